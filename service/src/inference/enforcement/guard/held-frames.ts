import type { Frame, Piece } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import type { FrameTexts, TextReader } from '#formats/texts/frame-texts.ts'
import { isView, type TextView } from '#formats/texts/text-views.ts'
import { answerBeyondLimits } from '#inference/enforcement/refusals.ts'
import { toFailure } from '#inference/upstreams/upstream-failure.ts'
import type { LongStep, Steps } from '#platform/steps/steps.ts'
import type { AnswerGuard } from '#policies/guard/answer-guard.ts'

/** A frame, and how much of each of its channels must be cleared before it may leave. */
type Held = { frame: Frame; needs: readonly { channel: string; length: number }[] }

/** Text of a channel that the guard has not been shown, with its other readings. */
type Unseen = { channel: string; text: string; views: TextView[] }
const nothing = (): Unseen => ({ channel: '', text: '', views: [] })

/** Frames without text wait behind those with text, so their number is not bounded by what the guard holds. */
const framesMax = 100_000
/** Nor are their bytes: a frame may be a million of them around one letter. A single frame has a bound of its own. */
const bytesMax = 32 * 1024 * 1024
/** How much of a text the guard is shown in one step: a plain answer is one frame with all that the model says. */
const shownAtOnce = 1024
/** A delta of a stream that is no longer takes no time worth sharing out. */
const shortMax = 256

/**
 * The frames of an answer on their way past its guard. They stay whole and in order: a frame leaves when all of its texts are
 * cleared and every earlier frame has left. What never leaves is dropped together with this object.
 */
export class HeldFrames {
  readonly #guard: AnswerGuard
  #held: Held[] = []
  #bytes = 0
  /** What the guard will be shown next: the deltas of frames that arrived together are judged together. */
  #unseen = nothing()
  readonly #waitForVerdict: () => Promise<void>

  /** `waitForVerdict` resolves when the guard reports its next change. */
  constructor(guard: AnswerGuard, waitForVerdict: () => Promise<void>) {
    this.#guard = guard
    this.#waitForVerdict = waitForVerdict
  }

  /**
   * Shows the texts of a piece to the guard and keeps its frames. What is little work, such as the next delta of a stream, is
   * done at once; the rest are steps, which the caller has to take.
   */
  add(
    piece: Piece,
    reader: TextReader,
    onTexts: (texts: FrameTexts) => void,
  ): Steps<void> | undefined {
    const { frames, isPlain } = piece
    const [frame] = frames
    if (isPlain || frames.length > 1 || !frame) return this.#addAll(piece, reader, onTexts)
    if (this.#guard.ended) return undefined
    const texts = reader.read(frame)
    onTexts(texts)
    if (this.#addAtOnce(frame, texts)) return undefined
    return this.#addLast(frame, texts)
  }

  *#addAll(
    { frames, isPlain }: Piece,
    reader: TextReader,
    onTexts: (texts: FrameTexts) => void,
  ): Steps<void> {
    for (const frame of frames) {
      if (this.#guard.ended) return
      const texts = isPlain ? reader.readPlain(frame.source.json) : reader.read(frame)
      onTexts(texts)
      const needs = this.#showDelta(texts) ?? (yield* this.#show(texts))
      // The guard did not take all of its texts, so it is unknown whether they are cleared.
      if (this.#isUnjudged()) return
      this.#hold({ frame, needs })
    }
    yield* this.#showUnseen()
  }

  *#addLast(frame: Frame, texts: FrameTexts): Steps<void> {
    const needs = yield* this.#show(texts)
    if (this.#isUnjudged()) return
    this.#hold({ frame, needs })
    yield* this.#showUnseen()
  }

  /** A frame with one short delta, or with no text. */
  #addAtOnce(frame: Frame, { texts, ended }: FrameTexts): boolean {
    if (ended.length > 0 || texts.length > 1) return false
    const [delta] = texts
    if (!delta) {
      this.#hold({ frame, needs: [] })
      return true
    }
    const { channel, text, kind, views } = delta
    if (kind !== 'delta' || text.length > shortMax || this.#guard.isFull) return false
    this.#guard.add(channel, text, views)
    if (!this.#isUnjudged()) {
      this.#hold({ frame, needs: [{ channel, length: this.#guard.lengthOf(channel) }] })
    }
    return true
  }

  /** Whether some of the frames may leave now. */
  get mayLeave(): boolean {
    const [first] = this.#held
    return first !== undefined && this.#isCleared(first.needs)
  }

  #hold(held: Held) {
    this.#held.push(held)
    this.#bytes += held.frame.source.bytes.length
    const isTooMuch = this.#bytes > bytesMax && this.#held.length > 1
    if (isTooMuch || this.#held.length > framesMax) throw answerBeyondLimits()
  }

  /** The frames that may leave now. */
  take(): Frame[] {
    const stays = this.#held.findIndex(({ needs }) => !this.#isCleared(needs))
    const count = stays === -1 ? this.#held.length : stays
    const left = this.#held.splice(0, count).map(({ frame }) => frame)
    for (const { source } of left) this.#bytes -= source.bytes.length
    return left
  }

  /** What most frames of a stream are: more of the text of the frame before, or no text. Undefined where it is not so. */
  #showDelta({ texts, ended }: FrameTexts): Held['needs'] | undefined {
    if (ended.length > 0 || texts.length > 1) return undefined
    const [delta] = texts
    if (!delta) return []
    const { channel, text, kind, views } = delta
    if (kind !== 'delta' || channel !== this.#unseen.channel) return undefined
    this.#unseen.text += text
    if (views) for (const view of views) this.#unseen.views.push(view)
    return [{ channel, length: this.#lengthOf(channel) }]
  }

  /** A text that ends in this frame ends before the next one begins: what follows does not wait for it. */
  *#show({ texts, ended }: FrameTexts): Steps<Held['needs']> {
    const lastTexts = new Map(texts.map((text) => [text.channel, text]))
    const ending = new Set(ended)
    for (const each of texts) {
      const { channel, text, kind, views = [] } = each
      if (channel !== this.#unseen.channel || kind === 'whole') yield* this.#showUnseen()
      const more = kind === 'delta' ? text : this.#guard.restOf(channel, text)
      if (more === null) throw broken('A text that it repeats differs from what it said before.')
      this.#unseen.channel = channel
      this.#unseen.text += more
      if (more !== '') for (const view of views) this.#unseen.views.push(view)
      if (lastTexts.get(channel) === each && ending.delete(channel)) yield* this.#end(channel)
    }
    for (const channel of ending) yield* this.#end(channel)
    return Array.from(lastTexts.keys(), (channel) => ({
      channel,
      length: this.#lengthOf(channel),
    }))
  }

  *#end(channel: string): Steps<void> {
    yield* this.#showUnseen()
    if (isView(channel)) this.#guard.endView(channel)
    else this.#guard.endChannel(channel)
    yield
  }

  *#showUnseen(): Steps<void> {
    const { channel, text, views } = this.#unseen
    this.#unseen = nothing()
    const start = this.#guard.lengthOf(channel)
    const rest = new UnshownViews(views)
    for (let at = 0; at < text.length; at += shownAtOnce) {
      // Nothing else is awaited between this question and the wait, or a verdict that came in between would be missed.
      while (this.#guard.isFull) yield pauseFor(this.#waitForVerdict)
      const known = rest.takeBefore(start + at + shownAtOnce)
      this.#guard.add(channel, text.slice(at, at + shownAtOnce), known)
      yield
    }
  }

  #lengthOf(channel: string): number {
    const unseen = channel === this.#unseen.channel ? this.#unseen.text.length : 0
    return this.#guard.lengthOf(channel) + unseen
  }

  #isUnjudged(): boolean {
    return this.#guard.ended !== null && this.#guard.ended.kind !== 'block'
  }

  #isCleared(needs: Held['needs']): boolean {
    return needs.every(({ channel, length }) => this.#guard.clearedOf(channel) >= length)
  }
}

/** The other readings of a text that is shown in steps, each with what it stands for. */
class UnshownViews {
  readonly #views: readonly TextView[]
  #next = 0
  /** The rests of those that stand on both sides of the last place. */
  #divided: TextView[] = []

  constructor(views: readonly TextView[]) {
    this.#views = views.toSorted((one, other) => one.from - other.from)
  }

  takeBefore(place: number): TextView[] {
    const candidates = this.#divided
    this.#divided = []
    for (let view = this.#views[this.#next]; view && view.from < place;) {
      candidates.push(view)
      view = this.#views[++this.#next]
    }
    return candidates.map((view) => this.#cut(view, place))
  }

  #cut(view: TextView, place: number): TextView {
    const { text, from, isFlat } = view
    if (isFlat || from + text.length <= place) return view
    this.#divided.push({ ...view, text: text.slice(place - from), from: place })
    return { ...view, text: text.slice(0, place - from) }
  }
}

const pauseFor = (elsewhere: () => Promise<void>): LongStep => ({
  here() {
    throw new Error('A verdict cannot be awaited in one turn of the event loop.')
  },
  elsewhere,
})

const broken = (problem: string) =>
  toFailure(new BrokenAnswer(`The answer cannot be judged. ${problem}`)).error
