import { join } from 'node:path'

import { isBuilt } from './program.ts'
import { repositoryRoot } from './source-files.ts'

/** Half of the time that sources need to start is compiling them again. A built program has a cache of its own. */
export const compileCache = (): Record<string, string> =>
  isBuilt() ? {} : { NODE_COMPILE_CACHE: join(repositoryRoot, 'node_modules/.cache/compiled') }
