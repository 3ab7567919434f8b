import { serveThread } from '#platform/serve-thread.ts'
import { countTexts } from '#tokens/count.ts'
import type { Encoding } from '#tokens/ranks.ts'

/** The entry of our worker threads: computations that would hold up the event loop. */
serveThread({
  countTexts({ encoding, texts }: { encoding: Encoding; texts: string[] }, isCancelled) {
    return countTexts(encoding, texts, () => {
      if (isCancelled()) throw new Error('Nobody waits for this count.')
      return undefined
    })
  },
})
