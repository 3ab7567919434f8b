import type { Log } from '#platform/log.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import { createFittedFactors } from './fitted-factor.ts'

const name = 'token-factors'
const keptMs = 90 * 24 * 60 * 60 * 1000
const everyMs = 5 * 60 * 1000

/** Factors that survive a restart: what was learnt about a model is not learnt again every time. */
export function keepFactors({ files, log }: { files: TrustedFiles; log: Log }) {
  const factors = createFittedFactors()
  let saved = ''

  async function restore() {
    const kept = await files.read(name, keptMs)
    if (kept) factors.importState(JSON.parse(kept.text))
  }
  async function save() {
    const text = JSON.stringify(factors.exportState())
    if (text === saved) return
    await files.keep(name, text)
    saved = text
  }
  const complain = (error: unknown) => log.problem('keeping token factors', error)

  restore().catch(complain)
  const timer = setInterval(() => void save().catch(complain), everyMs).unref()
  return {
    factors,
    async stop() {
      clearInterval(timer)
      await save().catch(complain)
    },
  }
}
