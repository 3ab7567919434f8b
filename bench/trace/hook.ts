import { registerHooks } from 'node:module'
import { isMainThread } from 'node:worker_threads'

import { listenToParent } from './marks.ts'

// Loaded into a process before its own code, for `./dev bench --trace` only. Where the service builds the steps of a call, it
// gets them from `traced-steps.ts` instead, which notes what each of them takes. The service knows nothing of it.

const traced = '/service/src/inference/steps.ts'
const replacement = new URL('traced-steps.ts', import.meta.url).href

if (isMainThread && process.send && process.env['ROLES'] === 'api') {
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const resolved = nextResolve(specifier, context)
      const isTraced = resolved.url.endsWith(traced) && context.parentURL !== replacement
      return isTraced ? { ...resolved, url: replacement, shortCircuit: true } : resolved
    },
  })
  listenToParent()
}
