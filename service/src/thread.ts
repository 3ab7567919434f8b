import { serveThread } from '#platform/serve-thread.ts'
import { countTexts, loadCounter } from '#tokens/count.ts'
import { type Encoding, encodings } from '#tokens/ranks.ts'

/** The entry of our worker threads: computations that would hold up the event loop. */
await Promise.all(encodings.map(loadCounter))
serveThread({
  countTexts({ encoding, texts }: { encoding: Encoding; texts: string[] }, isCancelled) {
    return countTexts(encoding, texts, () => {
      if (isCancelled()) throw new Error('Nobody waits for this count.')
      return undefined
    })
  },
})
