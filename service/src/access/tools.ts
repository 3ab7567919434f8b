import type { Announce } from '#audit/announce.ts'
import type { MutationTools } from '#http/bind-mutation.ts'

import type { HashKey } from './secret.ts'

/** What the endpoints of this folder need. */
export type AccessTools = MutationTools & { announce: Announce; hashKey: HashKey }
