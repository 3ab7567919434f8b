import type { Log } from '#platform/log.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import { createFittedFactors } from './fitted-factor.ts'

const fileName = 'token-factors'
const keptMs = 90 * 24 * 60 * 60 * 1000
const everyMs = 5 * 60 * 1000

/** Token factors that are saved to disk, so that they survive a restart. */
export function createSavedFactors({ files, log }: { files: TrustedFiles; log: Log }) {
  const factors = createFittedFactors()
  let saved = ''

  async function restore() {
    const kept = await files.read(fileName, keptMs)
    if (kept) factors.importState(JSON.parse(kept.text))
  }
  async function save() {
    const text = JSON.stringify(factors.exportState())
    if (text === saved) return
    await files.keep(fileName, text)
    saved = text
  }
  const onUnsaved = (error: unknown) => log.problem('token_factors_unsaved', error)

  restore().catch((error: unknown) => log.problem('token_factors_unreadable', error))
  const timer = setInterval(() => void save().catch(onUnsaved), everyMs).unref()
  return {
    factors,
    async stop() {
      clearInterval(timer)
      await save().catch(onUnsaved)
    },
  }
}
