import type { Json, SourceFrame } from '#formats/answer.ts'

import type { TextReader } from './frame-texts.ts'
import { TextCollector } from './text-collector.ts'

/** How a format is read: each function hands every string of what it is given to the collector. */
type Reading = {
  readFrame(texts: TextCollector, source: SourceFrame): void
  readPlain(texts: TextCollector, body: Json): void
}

/** `before` is what the caller has written of the answer. */
export function createTextReader({ readFrame, readPlain }: Reading, before = ''): TextReader {
  const texts = new TextCollector(before)
  return {
    read({ source, events, isRepeated }) {
      texts.begin()
      const [event] = events
      const isKnown = isRepeated && event?.type === 'block_delta' && texts.repeat(event.text)
      if (!isKnown) {
        texts.forgetDeltas()
        readFrame(texts, source)
      }
      return texts.take()
    },
    get repeatedChannel() {
      return texts.repeatedChannel
    },
    readRepeated(text) {
      texts.begin()
      texts.repeat(text)
      return texts.take()
    },
    readPlain(body) {
      texts.begin()
      readPlain(texts, body)
      texts.endAll()
      return texts.take()
    },
  }
}
