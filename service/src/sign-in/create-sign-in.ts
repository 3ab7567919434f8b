import { createFailedAttempts } from '#access/failed-attempts.ts'

import { createProviders, type ProvidersOptions } from './create-providers.ts'
import { createCodeGuesses } from './device/code-guesses.ts'
import type { ProviderDeps } from './provider-pages/provider-deps.ts'
import { findWayOut } from './provider-pages/sign-out-at-provider.ts'
import { createRefusalRecorder } from './refusals/record-refusals.ts'

type Made =
  | 'listProviders'
  | 'recordRefusal'
  | 'findWayOut'
  | 'settings'
  | 'openProvider'
  | 'keysAt'
  | 'linkGuesses'
  | 'codeGuesses'
export type SignInOptions = Omit<ProviderDeps, Made> & ProvidersOptions

/** What the pages of sign-in need of this process. */
export function createSignIn(options: SignInOptions) {
  const refusals = createRefusalRecorder(options)
  const { stop, ...providers } = createProviders(options)
  const onRefused = () => options.metrics.guessesRefused.inc()
  const deps: ProviderDeps = {
    ...options,
    ...providers,
    listProviders: () => providers.settings().providers,
    recordRefusal: refusals.record,
    linkGuesses: createFailedAttempts({
      ...options,
      onRefused,
      countedBy: 'address',
      guessKind: 'unknown links',
      guessesMax: 10,
    }),
    codeGuesses: createCodeGuesses({ ...options, onRefused }),
    findWayOut: (caller, publicUrl) => findWayOut(caller, publicUrl, { ...options, ...providers }),
  }
  return {
    deps,
    async stop() {
      stop()
      await refusals.stop()
    },
  }
}
