import { isDeepStrictEqual } from 'node:util'

import type { Guardrail } from '#moderation/guardrails/guardrail.ts'
import type { SecretBox } from '#platform/secrets.ts'

import { openGuardrailSecret, type SavedGuardrail } from './saved-guardrail.ts'

/** An enabled guardrail as it is stored, in the database and in the copy on disk. */
export type StoredGuardrail = Pick<
  SavedGuardrail,
  'id' | 'name' | 'url' | 'mode' | 'onError' | 'deadlineMs' | 'projectIds'
> & {
  /** In hexadecimal digits. */
  readonly sealedSecret: string
}

/** A guardrail that is in force. */
export type GuardrailInForce = StoredGuardrail & {
  /** As calls ask it, with its secret; null: no master key opens that, so it cannot be asked. */
  readonly asked: Guardrail | null
}

/** What is kept of a guardrail in force. */
export const storedGuardrailOf = ({ asked: _, ...stored }: GuardrailInForce): StoredGuardrail =>
  stored

/** Whether both are the same, also as they are sealed: the copy on disk follows when a secret was sealed again. */
export const areSameGuardrails = (
  some: readonly (StoredGuardrail | GuardrailInForce)[],
  others: readonly StoredGuardrail[],
): boolean => isDeepStrictEqual(some.map(withoutAsked), others.map(withoutAsked))

function withoutAsked(guardrail: StoredGuardrail | GuardrailInForce): StoredGuardrail {
  return 'asked' in guardrail ? storedGuardrailOf(guardrail) : guardrail
}

export function openGuardrail(
  stored: StoredGuardrail,
  organizationId: string,
  secretBox: SecretBox,
): GuardrailInForce {
  const { id, name, url, mode, onError, deadlineMs } = stored
  const sealed = { id, organizationId, secret: Buffer.from(stored.sealedSecret, 'hex') }
  const secret = openGuardrailSecret(sealed, secretBox)
  const asked = secret === undefined ? null : { id, name, url, mode, onError, deadlineMs, secret }
  return Object.freeze({ ...stored, asked: asked && Object.freeze(asked) })
}
