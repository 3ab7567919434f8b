import type { Steps } from '#platform/steps/steps.ts'
import type { AnswerEnding, AnswerRules } from '#policies/rules/answer-rules.ts'

import type { Arrivals } from './arrivals.ts'
import { AtomStarts, type AskedAtoms, type Place, readAskedAtoms } from './atom-starts.ts'
import type { AnswerReading } from './channel-reader.ts'
import { addView, type Channel, createChannel, restOf, type View } from './channel.ts'
import { EntityCount } from './entity-count.ts'
import type { EndOutcome, GuardEnd } from './guard-end.ts'
import { guardLimits } from './guard-limits.ts'
import type { GuardOptions } from './guard-options.ts'
import { SizeCount } from './size-count.ts'
import { SlowPatterns } from './slow-patterns.ts'
import { ScorerUnavailable, WindowQueue } from './window-queue.ts'

/**
 * | state        | moves on to  | when                                                                |
 * | ------------ | ------------ | ------------------------------------------------------------------- |
 * | `growing`    | `complete`   | the answer is over, and a rule needs all of it                      |
 * |              | `decided`    | the answer is over, and no rule does                                |
 * | `complete`   | `evaluating` | every window has its verdict                                        |
 * | `evaluating` | `decided`    | the rules that need all of the answer were evaluated                |
 * | any of them  | `ended`      | something ends the answer, it cannot be judged, or it is too large  |
 * |              | `stopped`    | the caller of the guard needs no more verdicts                      |
 */
type State = 'growing' | 'complete' | 'evaluating' | 'decided' | 'ended' | 'stopped'

/**
 * Decides how much of an answer may leave while it grows, under the enforcing rules. It counts characters and knows no
 * frames: `HeldFrames` has those, and asks `clearedOf` and `ended`.
 *
 * Every character has a place in the order of arrival. The guard knows up to which place everything is decided, whatever
 * may still come. A rule's cut counts only if it lies before that place, so neither the verdict nor the reported rule
 * depends on the pieces in which the answer came. What lies before that place and before the smallest cut is cleared.
 */
export class AnswerGuard<Ending extends AnswerEnding = AnswerEnding> {
  /** Nothing may leave before the answer is over. */
  readonly needsWhole: boolean
  /** Why the answer could not be judged; undefined where the reason is not known. */
  failure: unknown
  readonly #options: GuardOptions
  readonly #rules: readonly Ending[]
  readonly #entityAtoms: AnswerRules['entities']
  readonly #asked: AskedAtoms
  readonly #starts = new AtomStarts()
  readonly #sizes: SizeCount
  readonly #windows: WindowQueue | null
  readonly #slowPatterns: SlowPatterns | null
  readonly #reading: AnswerReading | null
  readonly #channels = new Map<string, Channel>()
  /** Channels with characters that are not read to the end of what they may mean. */
  readonly #unread = new Set<Channel>()
  readonly #endMatches = new Map<number, EndOutcome>()
  #growing = 0
  #textLength = 0
  /** The same as rules see it. */
  #seenLength = 0
  /** How many characters, of those that rules see, are not read. */
  #unreadLength = 0
  /** How many characters and ends of channels have arrived. */
  #order = 0
  /** No later text changes what the formulas say of everything that arrived before. */
  #read = 0
  /** Everything that arrived before is decided: as far as it is read, and nothing while the whole answer is waited for. */
  #decided = 0
  #origin: Place = { order: 0, channel: '', offset: 0 }
  /** A window that starts there has no verdict and will have none. */
  #unjudgedFrom = Infinity
  #state: State = 'growing'
  #ended: GuardEnd<Ending> | null = null
  #heldMost = 0

  constructor(rules: AnswerRules<Ending>, options: GuardOptions) {
    this.#options = options
    this.#rules = rules.rules.filter(({ isEnforcing }) => isEnforcing)
    this.needsWhole = rules.hold === 'full' || this.#rules.some(({ formula }) => !formula)
    this.#entityAtoms = rules.entities
    this.#asked = readAskedAtoms(this.#rules)
    this.#sizes = new SizeCount(this.#asked.size, this.#starts)
    this.#windows = this.#createWindows()
    this.#slowPatterns = SlowPatterns.of(rules, this.#asked.pattern, options, (error) =>
      this.#reportChange(() => this.#fail('unavailable', error)),
    )
    this.#reading = Object.values(this.#asked).some(({ size }) => size > 0)
      ? {
          rules,
          asked: this.#asked,
          starts: this.#starts,
          windows: this.#windows,
          slowPatterns: this.#slowPatterns,
          entities: this.#createEntityCount(),
          onVerdict: () => this.#reportChange(() => this.#advance()),
          onUnjudged: (order) => (this.#unjudgedFrom = Math.min(this.#unjudgedFrom, order)),
        }
      : null
  }

  /** Whether the rules without a formula have been evaluated, if there are any. Until then nothing may leave. */
  get #isWholeKnown(): boolean {
    return !this.needsWhole || this.#state === 'decided'
  }

  /** Set as soon as the answer may not go on. */
  get ended(): GuardEnd<Ending> | null {
    return this.#ended
  }

  /** The most characters that were waiting at once. */
  get heldMost(): number {
    return this.#heldMost
  }

  /** True while a window waits for its verdict, a text for its search, or the whole answer for the rules that need it. */
  get isWaiting(): boolean {
    if (this.#ended) return false
    const isPending = this.#windows?.isWaiting || this.#slowPatterns?.isWaiting
    return isPending || this.#state === 'complete' || this.#state === 'evaluating'
  }

  /** So much waits for verdicts that no more text should be added before the next change. */
  get isFull(): boolean {
    return this.isWaiting && this.#unreadLength > guardLimits.unreadMostScored
  }

  /** How many characters of the channel's original text may leave. */
  clearedOf(name: string): number {
    return this.#channels.get(name)?.arrivals.countBefore(this.#decided) ?? 0
  }

  lengthOf(name: string): number {
    return this.#channels.get(name)?.arrivals.length ?? 0
  }

  /**
   * More text of a channel, as it came, and in other readings. Those are channels of their own, in which rules find more; they
   * have no size, and what personal data they repeat counts once. Their characters have the order of those they stand for, so
   * that verdicts do not depend on when a reading became known.
   */
  add(name: string, text: string, views: readonly View[] = []): void {
    const channel = this.#openChannel(name)
    if (!channel || text === '') return
    this.#textLength += text.length
    if (this.#readsText) {
      // A channel that has ended was decided: more of it would never be seen together with what it continues.
      if (channel.isEnded) return this.#fail('unavailable')
      if (this.#textLength > guardLimits.textMost) return this.#fail('beyond_limits')
      channel.text += text
    }
    channel.arrivals.add(text, this.#takeOrder(channel, text.length))
    this.#unread.add(channel)
    const normalised = channel.reader?.add(text) ?? text.length
    channel.waiting.add(text.length, normalised)
    this.#seenLength += Math.min(text.length, normalised)
    if (this.#reading) for (const view of views) this.#addView(view, channel.arrivals)
    this.#advance()
  }

  #addView(view: View, arrivals: Arrivals) {
    const channel = this.#channels.get(view.channel) ?? this.#createChannel(view.channel, true)
    addView(channel, view, arrivals)
    this.#unread.add(channel)
  }

  /**
   * What the whole text of a channel adds to what has come of it: nothing where they are equal, otherwise a
   * continuation. Null where it says something else.
   */
  restOf(name: string, whole: string): string | null {
    if (this.#ended) return ''
    const channel = this.#channels.get(name)
    // Where no rule reads the text nothing is kept to compare it with, and nothing depends on it.
    return channel && this.#readsText ? restOf(channel, whole) : whole.slice(this.lengthOf(name))
  }

  /** No more text of this reading, if there is any. */
  endView(name: string): void {
    if (this.#channels.has(name)) this.endChannel(name)
  }

  /** No more text of this channel: its last characters can be decided. */
  endChannel(name: string): void {
    const channel = this.#openChannel(name)
    if (!channel || channel.isEnded) return
    this.#end(channel)
    this.#advance()
  }

  /** Ends every channel, in steps: each of them has last characters to be judged. */
  *endChannels(): Steps<void> {
    for (const name of this.#channels.keys()) {
      this.endChannel(name)
      yield
    }
  }

  /** The answer is over. Rules without a formula are evaluated from now on, which others do not wait for. */
  end(): void {
    if (this.#state !== 'growing') return
    for (const channel of this.#channels.values()) if (!channel.isEnded) this.#end(channel)
    this.#state = this.needsWhole ? 'complete' : 'decided'
    // The end of an answer counts like a character: an empty answer can be blocked there.
    this.#order++
    this.#advance()
  }

  /** Ends the answer as one that cannot be judged, because its verdicts take too long. */
  giveUp(): void {
    if (!this.#ended) this.#fail('unavailable')
  }

  /** Aborts windows in flight. No change is reported afterwards. */
  stop(): void {
    if (!this.#ended) this.#state = 'stopped'
    this.#windows?.stop()
    this.#slowPatterns?.stop()
  }

  /** Whether some enforcing rule does. The others are decided without it, and their answers know no limits here. */
  get #readsText(): boolean {
    return this.#reading !== null || this.needsWhole
  }

  /** Each view has its own. Where it joins words that stand apart, what they make is no personal data. */
  #createEntityCount(view = ''): EntityCount | null {
    if (this.#options.joinsWords?.(view)) return null
    return EntityCount.of(this.#entityAtoms, this.#asked.entity, this.#starts)
  }

  #createWindows(): WindowQueue | null {
    if (this.#asked.score.size === 0) return null
    const { scoreWindows, windowsTogether, now } = this.#options
    // Rules that ask for scores where nothing scores can never be decided.
    if (!scoreWindows) this.#endWith({ kind: 'unavailable' })
    return new WindowQueue({
      scoreWindows: scoreWindows ?? (() => Promise.reject(new Error('There is no scorer.'))),
      batchLength: windowsTogether,
      now: () => now(),
      onFailure: (error) => {
        if (!(error instanceof ScorerUnavailable)) this.#options.onUnexpected?.(error)
        this.#reportChange(() => this.#endUnjudged(error))
      },
    })
  }

  #openChannel(name: string): Channel | null {
    const known = this.#ended ? null : this.#channels.get(name)
    if (known !== undefined) return known
    const isFull =
      this.#growing === guardLimits.growingChannelsMost ||
      this.#channels.size === guardLimits.channelsMost
    const isGrowing = this.#state === 'growing'
    if (this.#readsText && (isFull || !isGrowing)) {
      this.#fail(isGrowing ? 'beyond_limits' : 'unavailable')
      return null
    }
    this.#growing++
    return this.#createChannel(name, false)
  }

  #createChannel(name: string, isView: boolean): Channel {
    const own = this.#reading
    const reading = own && isView ? { ...own, entities: this.#createEntityCount(name) } : own
    const channel = createChannel(name, reading, isView)
    this.#channels.set(name, channel)
    return channel
  }

  /** The first thing that arrives is where the answer begins. */
  #takeOrder(channel: Channel, count: number): number {
    const order = this.#order
    if (order === 0) this.#origin = { order: 0, channel: channel.name, offset: 0 }
    this.#order += count
    return order
  }

  #end(channel: Channel) {
    channel.isEnded = true
    channel.unreadOrder = Infinity
    if (!channel.isView) this.#growing--
    this.#unread.add(channel)
    const order = this.#takeOrder(channel, 1)
    channel.reader?.end(order)
  }

  async #evaluateWhole() {
    try {
      for (const outcome of await this.#options.evaluateAtEnd()) {
        if (outcome.isMatch) this.#endMatches.set(outcome.index, outcome)
      }
      if (this.#state === 'evaluating') this.#state = 'decided'
      this.#reportChange(() => this.#advance())
    } catch (error) {
      this.#reportChange(() => this.#fail('unavailable', error))
    }
  }

  /** Rules for the whole answer may read its scores, so every window has its verdict first. */
  #askWhole() {
    if (this.#state !== 'complete' || this.#windows?.isWaiting) return
    this.#state = 'evaluating'
    void this.#evaluateWhole()
  }

  /** Finds out what has been decided since, and what follows from it. */
  #advance() {
    if (this.#ended) return
    this.#askWhole()
    const read = this.#findRead()
    if (read > this.#read) this.#sizes.advance(read, this.#unread)
    this.#read = read
    this.#decided = this.#isWholeKnown ? read : 0
    if (this.#starts.hasNewsBefore(this.#decided)) this.#applyRules(this.#decided)
    if (!this.#ended) this.#letGo()
  }

  #findRead(): number {
    let read = this.#order
    for (const { reader, unreadOrder } of this.#unread) {
      if (reader) read = Math.min(read, reader.decidedOrder, unreadOrder)
    }
    return read
  }

  /**
   * Nothing from a window without a verdict on may leave. Where a rule matches there or before, that is why: whatever the
   * verdict is, the answer is blocked.
   */
  #endUnjudged(error: unknown) {
    this.#applyRules(this.#unjudgedFrom + 1)
    if (!this.#ended) this.#fail('unavailable', error)
  }

  /** The rule with the smallest cut before this place blocks, the first of several. */
  #applyRules(before: number) {
    let first: { rule: Ending; cut: Place } | null = null
    for (const rule of this.#rules) {
      const cut = this.#cutOf(rule)
      if (!cut || cut.order >= before) continue
      if (!first || cut.order < first.cut.order) first = { rule, cut }
    }
    this.#starts.settle(this.#decided)
    if (!first) return
    const { rule, cut } = first
    const { isError = false } = (rule.formula ? rule : this.#endMatchOf(rule)) ?? {}
    const { channel, offset } = cut
    this.#endWith({ kind: 'block', ending: rule, isError, channel, cut: offset })
    this.#decided = Math.min(this.#decided, cut.order)
    this.stop()
  }

  #cutOf(rule: Ending): Place | null {
    if (rule.formula) return this.#starts.cutOf(rule.formula, this.#origin)
    return this.#endMatchOf(rule) ? this.#origin : null
  }

  #endMatchOf({ index }: Ending): EndOutcome | undefined {
    return index === undefined ? undefined : this.#endMatches.get(index)
  }

  /** Forgets what is read, and fails when too much is not cleared. */
  #letGo() {
    // While nothing is read there is no need to look at every channel.
    this.#unreadLength = this.#read === 0 ? this.#seenLength : this.#forgetRead()
    const held = this.#isWholeKnown ? this.#unreadLength : this.#textLength
    this.#heldMost = Math.max(this.#heldMost, held)
    const { heldMostFull, heldMostStreaming } = guardLimits
    if (held > (this.needsWhole ? heldMostFull : heldMostStreaming)) this.#fail('beyond_limits')
  }

  /** Returns how many characters, of those that rules see, are not read. */
  #forgetRead(): number {
    let unread = 0
    for (const channel of this.#unread) {
      const { arrivals, waiting } = channel
      const read = arrivals.countBefore(this.#read)
      unread += waiting.from(read)
      // What is not decided yet may still be cut.
      if (this.#isWholeKnown) arrivals.forget(read)
      if (read < arrivals.length || channel.unreadOrder < Infinity) continue
      // A search may still find a match that begins where the channel has ended.
      if (channel.isEnded && channel.reader && channel.reader.decidedOrder < Infinity) continue
      this.#unread.delete(channel)
      if (channel.isEnded) channel.reader = null
    }
    return unread
  }

  #endWith(end: GuardEnd<Ending>) {
    this.#ended = end
    this.#state = 'ended'
  }

  #fail(kind: 'beyond_limits' | 'unavailable', failure?: unknown) {
    this.#endWith({ kind })
    this.failure = failure
    this.stop()
  }

  #reportChange(change: () => void) {
    if (this.#state === 'ended' || this.#state === 'stopped') return
    const before = this.#decided
    const hadMuch = this.#unreadLength > guardLimits.unreadMostScored
    change()
    const hasRoomNow = hadMuch && !this.isFull
    if (this.#ended !== null || this.#decided !== before || hasRoomNow) this.#options.onChange?.()
  }
}
