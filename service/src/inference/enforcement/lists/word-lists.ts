import type { Check } from '#inference/enforcement/check.ts'
import { locate } from '#inference/enforcement/locate-matches.ts'
import { runInTurns } from '#platform/steps/steps.ts'

/** The allowlist and the denylist of the configuration. It decides about them together with the categories, later. */
export const wordLists: Check = {
  name: 'word lists',
  async find({ findings, texts, asker }) {
    const { configured } = findings
    if (!configured) return
    // The header says so until something is found.
    configured.announce('allow')
    const isDenied = await runInTurns(configured.readRequest(texts), asker)
    if (!isDenied) return
    await locate(findings, texts.text, async (said) => runInTurns(configured.isDenied(said), asker))
  },
}
