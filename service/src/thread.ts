import { serveThread } from '#platform/serve-thread.ts'
import { countTexts, loadCounter } from '#tokens/count.ts'
import type { Encoding } from '#tokens/ranks.ts'

/** The entry of our worker threads: computations that would hold up the event loop. */
// The usual encoding; another one is loaded by the first count that needs it.
await loadCounter('o200k')
serveThread({
  countTexts({ encoding, texts }: { encoding: Encoding; texts: string[] }, isCancelled) {
    return countTexts(encoding, texts, () => {
      if (isCancelled()) throw new Error('Nobody waits for this count.')
      return undefined
    })
  },
})
