import type { OutFrame, SourceFrame } from './answer.ts'

/** A frame that need not be parsed unless its JSON is read. */
class UnreadFrame implements OutFrame {
  readonly event: string | null
  readonly bytes: Buffer
  readonly #source: SourceFrame

  constructor(source: SourceFrame) {
    this.event = source.event === '' ? null : source.event
    this.bytes = source.bytes
    this.#source = source
  }

  get data(): OutFrame['data'] {
    return this.#source.json
  }
}

/** A repeated frame, passed on byte for byte. */
export const passRepeated = (source: SourceFrame): OutFrame => new UnreadFrame(source)

/** An upstream's frame, passed on to the caller byte for byte. */
export const passFrame = ({ event, json, bytes }: SourceFrame): OutFrame => ({
  event: event === '' ? null : event,
  data: json,
  bytes,
})
