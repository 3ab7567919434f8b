import type {
  AnswerEvent,
  Frame,
  Json,
  Piece,
  Reader,
  SourceFrame,
  TakePiece,
} from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import type { UpstreamFormat } from '#formats/format.ts'
import type { FrameParser, RawFrame } from '#formats/framing.ts'
import { isObject } from '#formats/json-values.ts'
import { ProviderError } from '#formats/provider-failure.ts'
import { RepeatedFrame } from '#formats/repeated-frame.ts'
import type { StreamedAnswer } from '#platform/calls/streamed-answer.ts'

import type { Upstream } from './catalogue.ts'

const frameMaxBytes = 8 * 1024 * 1024
/** A connection can be reused if its answer is read to the end. More than this is not read just for that. */
const restMax = { maxBytes: 64 * 1024, maxMs: 1000 }
const preambleMax = 100

type Options = { format: UpstreamFormat; upstream: Upstream }

/** Reads an answer as it arrives, until it is finished. Frames that arrive together are one piece. */
export class PieceReader {
  readonly #answer: StreamedAnswer
  readonly #format: UpstreamFormat
  readonly #upstream: Upstream
  readonly #parser: FrameParser
  readonly #reader: Reader
  readonly #repeated = new RepeatedFrame()
  /** The block that the repeated frames belong to. */
  #repeatedIndex = 0
  /** Comments and pings before the answer: with those alone it has not started. */
  #preamble: Frame[] = []
  #hasBegun = false
  /** Thrown only after the frames before it have been read, which are still part of the answer. */
  #problem: Error | undefined
  #isClosed = false

  constructor(answer: StreamedAnswer, { format, upstream }: Options) {
    this.#answer = answer
    this.#format = format
    this.#upstream = upstream
    this.#parser = format.framing.createParser({ frameMaxBytes })
    this.#reader = format.createReader()
  }

  /** The next piece; undefined when the answer is finished. Throws when it is broken or ends in the middle. */
  async read(): Promise<Piece | undefined> {
    for (;;) {
      const next = this.#next()
      if (next !== 'waiting') return next
      await this.#answer.arrival()
    }
  }

  /**
   * Passes pieces on where they arrive, until `take` wants no more for now: nothing that awaits is woken for each of them. Resolves to
   * whether the answer is finished; rejects as `read` does.
   */
  readWhile(take: TakePiece): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    const go = () => {
      try {
        for (let next = this.#next(); next !== undefined; next = this.#next()) {
          // All chunks that the connection has read at once are one piece.
          if (next === 'waiting') return this.#answer.onArrival(() => queueMicrotask(go))
          if (!take(next)) return resolve(false)
        }
        resolve(true)
      } catch (error) {
        reject(error as Error)
      }
    }
    go()
    return promise
  }

  #next(): Piece | 'waiting' | undefined {
    try {
      while (!this.#isClosed) {
        if (this.#problem) throw this.#problem
        const bytes = this.#answer.take()
        if (!bytes && !this.#answer.isRead) return 'waiting'
        const piece = this.#toPiece(bytes ? this.#parser.feed(bytes) : this.#lastFrames())
        if (this.#reader.isFinished()) this.close()
        else if (!bytes) this.#problem ??= new BrokenAnswer('The answer ended in the middle.')
        if (piece) return piece
      }
      return undefined
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Frees the connection. Must be called for every answer that was neither read to its end nor failed. */
  close() {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#reader.isFinished()) this.#answer.discard(restMax)
    else this.#answer.destroy()
  }

  /** Some upstreams end the stream without an end marker: the reader decides whether the answer was complete. */
  #lastFrames(): readonly RawFrame[] {
    return [...this.#parser.end(), endOfStream]
  }

  #toPiece(sent: readonly RawFrame[]): Piece | undefined {
    const frames = this.#readFrames(sent)
    if (frames.length === 0) return undefined
    const { name } = this.#format
    if (this.#hasBegun) return { format: name, frames }
    this.#hasBegun = frames.some(({ events }) => events.length > 0)
    const preamble = this.#preamble
    if (this.#hasBegun) {
      this.#preamble = []
      return { format: name, frames: [...preamble, ...frames] }
    }
    preamble.push(...frames.slice(0, preambleMax - preamble.length))
    return undefined
  }

  #readFrames(sent: readonly RawFrame[]): Frame[] {
    const frames: Frame[] = []
    try {
      for (const raw of sent) {
        if (this.#reader.isFinished()) break
        const text = this.#repeated.textOf(raw)
        const frame = text === undefined ? this.#readFrame(raw) : this.#repeatFrame(raw, text)
        if (sent.length === 1) return [frame]
        frames.push(frame)
      }
    } catch (error) {
      this.#problem = withoutSecret(error as Error, this.#upstream)
    }
    return frames
  }

  #readFrame({ event, data, bytes }: RawFrame): Frame {
    const json = readJson(data)
    const source = { event, data, bytes, json }
    const events = this.#reader.read(source)
    const reportedUsage = this.#format.usageIn(json)
    const hasMedia = this.#format.hasMedia?.(json) ?? false
    const delta = reportedUsage || hasMedia ? undefined : onlyDelta(events)
    if (delta && this.#reader.isRepeatable?.(delta)) {
      this.#repeated.learn(source, delta.text)
      this.#repeatedIndex = delta.index
    } else this.#repeated.forget()
    return { events, source, reportedUsage, hasMedia, isRepeated: false }
  }

  #repeatFrame(raw: RawFrame, text: string): Frame {
    return {
      events: [{ type: 'block_delta', index: this.#repeatedIndex, text }],
      source: new UnparsedFrame(raw),
      reportedUsage: undefined,
      hasMedia: false,
      isRepeated: true,
    }
  }
}

function onlyDelta(events: readonly AnswerEvent[]) {
  const [first] = events
  return events.length === 1 && first?.type === 'block_delta' ? first : undefined
}

/** The JSON of a repeated frame, parsed only if needed: most are passed on unread. */
class UnparsedFrame implements SourceFrame {
  readonly event: string
  readonly data: string
  readonly bytes: Buffer
  #json: Json | undefined

  constructor({ event, data, bytes }: RawFrame) {
    this.event = event
    this.data = data
    this.bytes = bytes
  }

  get json(): Json {
    return (this.#json ??= readJson(this.data))
  }
}

/** Some providers quote our key in their errors. Such an error must reach neither callers nor the log. */
export const withoutSecret = (problem: Error, { secret }: Upstream) =>
  secret !== null && wordsOf(problem).some((text) => text.includes(secret))
    ? new BrokenAnswer('An error quoted our key.')
    : problem

/** A message may have been cut in the middle of a key, so we look at the whole text as well. */
const wordsOf = (problem: Error): string[] =>
  problem instanceof ProviderError
    ? [problem.message, ...Object.values(problem.said).filter((each) => each !== null)]
    : [problem.message]

const endOfStream: RawFrame = { event: '', data: '[DONE]', bytes: Buffer.alloc(0) }

function readJson(data: string): Json {
  if (data === '' || data === '[DONE]') return {}
  let json: unknown
  try {
    json = JSON.parse(data)
  } catch {
    throw new BrokenAnswer('A frame is not JSON.')
  }
  if (isObject(json)) return json
  throw new BrokenAnswer('A frame is not a JSON object.')
}
