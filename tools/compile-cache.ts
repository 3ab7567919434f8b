import { fileURLToPath } from 'node:url'

/** For processes that tests and stacks start by the hundred: half of the time of a start is compiling the same sources. */
export const compileCache = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url)),
}
