import type { Frame, Piece } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import type { FrameText, FrameTexts, TextReader } from '#formats/texts/frame-texts.ts'
import { isView, type TextView } from '#formats/texts/text-views.ts'
import { answerBeyondLimits } from '#inference/enforcement/refusals.ts'
import { toFailure } from '#inference/upstreams/upstream-failure.ts'
import type { LongStep, Steps } from '#platform/steps/steps.ts'
import type { AnswerGuard } from '#policies/guard/answer-guard.ts'

/** How much of a channel must be cleared before a frame may leave. */
type Need = { readonly channel: string; readonly length: number }
/** `others`: of a frame with several channels, the further ones. A frame without text needs nothing. */
type Held = Need & { readonly frame: Frame; readonly others: readonly Need[] }

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

const nothingNeeded: Need = { channel: '', length: 0 }
const nothingElse: readonly Need[] = []
const noTexts: FrameTexts = { texts: [], ended: [], hasUnreadable: false }
const ascii = /^[\0-\x7f]*$/
/** Whether rules may see more characters than there are: then a few of them may be more than what is held back at most. */
const mayGrow = (text: string) => !ascii.test(text) && text.normalize('NFKC').length > text.length
/** Before the first piece. */
const noReader: TextReader = { read: () => noTexts, readPlain: () => noTexts }

/**
 * The frames of an answer on their way past its guard. They stay whole and in order: a frame leaves when all of its texts are
 * cleared and every earlier frame has left. What never leaves is dropped together with this object.
 *
 * Most frames of a stream have one short delta that goes on where the one before ended. Such deltas are collected, and read and shown to
 * the guard together when there are enough of them for it to clear something.
 */
export class HeldFrames {
  readonly #guard: AnswerGuard
  #held: Held[] = []
  #bytes = 0
  /** What the guard will be shown next. */
  #unseen = nothing()
  /** To which the next frame adds its text, if it repeats the last one. */
  #repeated: string | undefined
  /** The texts of repeated frames that the reader has not seen: they go on where `#unseen` ends. */
  #unread = ''
  /** The guard is shown texts when there is so much of them. */
  #wanted = 0
  #reader: TextReader = noReader
  #onTexts: (texts: FrameTexts) => void = () => undefined
  readonly #waitForVerdict: () => Promise<void>

  /** `waitForVerdict` resolves when the guard reports its next change. */
  constructor(guard: AnswerGuard, waitForVerdict: () => Promise<void>) {
    this.#guard = guard
    this.#waitForVerdict = waitForVerdict
  }

  /**
   * Shows the texts of a piece to the guard and keeps its frames. What is little work, such as the next deltas of a stream, is
   * done at once; the rest are steps, which the caller has to take.
   */
  add(
    { frames, isPlain = false }: Piece,
    reader: TextReader,
    onTexts: (texts: FrameTexts) => void,
  ): Steps<void> | undefined {
    this.#reader = reader
    this.#onTexts = onTexts
    if (isPlain) return this.#addSlowly(frames, isPlain)
    let index = 0
    for (const frame of frames) {
      if (this.#guard.ended) return undefined
      if (!this.#addRepeated(frame)) {
        const texts = this.#read(frame)
        if (!this.#addDelta(frame, texts)) {
          return this.#addSlowly(frames.slice(index), isPlain, texts)
        }
      }
      index++
    }
    return this.#showWanted()
  }

  /** Shows the guard what was collected: the answer is over. */
  *showRest(): Steps<void> {
    this.readRest()
    yield* this.#showUnseen()
  }

  /** Reads what was collected: texts that are not judged are recorded nevertheless. */
  readRest() {
    this.#readRepeated()
  }

  /** Whether some of the frames may leave now. */
  get mayLeave(): boolean {
    const first = this.#held[0]
    return first !== undefined && this.#isCleared(first)
  }

  /** The frames that may leave now. */
  take(): Frame[] {
    const left: Frame[] = []
    for (const held of this.#held) {
      if (!this.#isCleared(held)) break
      left.push(held.frame)
      this.#bytes -= held.frame.source.bytes.length
    }
    if (left.length > 0) this.#held.splice(0, left.length)
    return left
  }

  /** `first`: the texts of the first frame, where they are read already. */
  *#addSlowly(frames: readonly Frame[], isPlain: boolean, first?: FrameTexts): Steps<void> {
    let known = first
    for (const frame of frames) {
      if (this.#guard.ended) return
      const texts = known ?? this.#read(frame, isPlain)
      known = undefined
      if (this.#addDelta(frame, texts)) continue
      const needs = yield* this.#show(texts)
      // The guard did not take all of its texts, so it is unknown whether they are cleared.
      if (this.#isUnjudged()) return
      const [first = nothingNeeded, ...others] = needs
      this.#hold({ frame, channel: first.channel, length: first.length, others })
    }
    yield* this.#showUnseen()
  }

  #read(frame: Frame, isPlain = false): FrameTexts {
    this.#readRepeated()
    const reader = this.#reader
    const texts = isPlain ? reader.readPlain(frame.source.json) : reader.read(frame)
    this.#onTexts(texts)
    this.#repeated = reader.repeatedChannel
    return texts
  }

  /** A frame that is the one before it with another text: its text is read later, together with those of the next ones. */
  #addRepeated(frame: Frame): boolean {
    if (!frame.isRepeated) return false
    const event = frame.events[0]
    const channel = this.#repeated
    if (channel === undefined || event?.type !== 'block_delta') return false
    if (!this.#collects(channel, event.text)) return false
    this.#unread += event.text
    this.#hold({ frame, channel, length: this.#lengthOf(channel), others: nothingElse })
    return true
  }

  #readRepeated() {
    if (this.#unread === '') return
    const texts = this.#reader.readRepeated?.(this.#unread)
    const delta = texts?.texts[0]
    this.#unread = ''
    if (!texts || !delta) throw new Error('A repeated frame has no text.')
    this.#onTexts(texts)
    this.#collect(delta)
  }

  /** A frame with one short delta, or with no text. */
  #addDelta(frame: Frame, { texts, ended }: FrameTexts): boolean {
    if (ended.length > 0 || texts.length > 1) return false
    const delta = texts[0]
    if (delta) {
      const { channel, text, kind } = delta
      if (kind !== 'delta' || !this.#collects(channel, text)) return false
      this.#collect(delta)
      this.#hold({ frame, channel, length: this.#lengthOf(channel), others: nothingElse })
    } else this.#hold({ frame, ...nothingNeeded, others: nothingElse })
    return true
  }

  /** Whether a delta of this channel can be collected with those that are. */
  #collects(channel: string, text: string): boolean {
    if (text.length > shortMax) return false
    const isFirst = this.#collectedLength === 0
    if (isFirst) {
      this.#unseen.channel = channel
      this.#wanted = this.#guard.wantedOf(channel)
    }
    if (mayGrow(text)) this.#wanted = 0
    return isFirst || channel === this.#unseen.channel
  }

  #collect({ text, views }: FrameText) {
    this.#unseen.text += text
    if (views) for (const view of views) this.#unseen.views.push(view)
  }

  get #collectedLength(): number {
    return this.#unseen.text.length + this.#unread.length
  }

  /** Shows the guard what was collected, if it wants that by now. */
  #showWanted(): Steps<void> | undefined {
    const length = this.#collectedLength
    if (length === 0 || length < this.#wanted) return undefined
    this.#readRepeated()
    const { channel, text, views } = this.#unseen
    if (views.length > 0 || text.length > shownAtOnce || this.#guard.isFull) {
      return this.#showUnseen()
    }
    this.#unseen = nothing()
    this.#guard.add(channel, text)
    return undefined
  }

  #hold(held: Held) {
    this.#held.push(held)
    this.#bytes += held.frame.source.bytes.length
    const isTooMuch = this.#bytes > bytesMax && this.#held.length > 1
    if (isTooMuch || this.#held.length > framesMax) throw answerBeyondLimits()
  }

  /** A text that ends in this frame ends before the next one begins: what follows does not wait for it. */
  *#show({ texts, ended }: FrameTexts): Steps<readonly Need[]> {
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
    const collected = channel === this.#unseen.channel ? this.#collectedLength : 0
    return this.#guard.lengthOf(channel) + collected
  }

  #isUnjudged(): boolean {
    return this.#guard.ended !== null && this.#guard.ended.kind !== 'block'
  }

  #isCleared({ channel, length, others }: Held): boolean {
    const isCleared = length === 0 || this.#guard.clearedOf(channel) >= length
    return isCleared && others.every((need) => this.#guard.clearedOf(need.channel) >= need.length)
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
