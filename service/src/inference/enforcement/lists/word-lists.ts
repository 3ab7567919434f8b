import type { Check } from '#inference/enforcement/check.ts'
import { locate } from '#inference/enforcement/locate-matches.ts'
import { runInTurns } from '#platform/steps/steps.ts'

/**
 * Looks for the terms of the allowlist and the denylist. The configuration decides about them later, together with the
 * categories.
 */
export const wordLists: Check = {
  name: 'word lists',
  async find({ findings, texts, asker }) {
    const { configured } = findings
    if (!configured) return
    // The header says `allow` until something is found.
    configured.announce('allow')
    const isDenied = await runInTurns(configured.readRequest(texts), asker)
    if (!isDenied) return
    await locate(findings, texts.text, async (said) => runInTurns(configured.isDenied(said), asker))
  },
}
