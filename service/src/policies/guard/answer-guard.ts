import type { Steps } from '#platform/steps/steps.ts'
import type { AnswerEnding, AnswerRules } from '#policies/rules/answer-rules.ts'

import { AnswerChannels } from './answer-channels.ts'
import { AnswerWindows } from './answer-windows.ts'
import { AtomStarts, type AskedAtoms, readAskedAtoms } from './atom-starts.ts'
import type { AnswerReading } from './channel-reader.ts'
import { type Channel, restOf, type View } from './channel.ts'
import { EntityCount } from './entity-count.ts'
import type { GuardEnd } from './guard-end.ts'
import { guardLimits } from './guard-limits.ts'
import type { GuardOptions } from './guard-options.ts'
import { RuleCuts } from './rule-cuts.ts'
import { SizeCount } from './size-count.ts'
import { SlowPatterns } from './slow-patterns.ts'

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
  readonly #cuts: RuleCuts<Ending>
  readonly #entityAtoms: AnswerRules['entities']
  readonly #asked: AskedAtoms
  readonly #starts = new AtomStarts()
  readonly #sizes: SizeCount
  /** Null where no rule asks for scores. */
  readonly #windows: AnswerWindows | null
  readonly #slowPatterns: SlowPatterns | null
  readonly #reading: AnswerReading | null
  readonly #channels: AnswerChannels
  #textLength = 0
  /** The same as rules see it. */
  #seenLength = 0
  /** How many characters, of those that rules see, are not read. */
  #unreadLength = 0
  /** No later text changes what the formulas say of everything that arrived before. */
  #read = 0
  /** Everything that arrived before is decided: as far as it is read, and nothing while the whole answer is waited for. */
  #decided = 0
  #state: State = 'growing'
  #ended: GuardEnd<Ending> | null = null
  #heldMost = 0

  constructor(rules: AnswerRules<Ending>, options: GuardOptions) {
    this.#options = options
    const enforcing = rules.rules.filter(({ isEnforcing }) => isEnforcing)
    this.#cuts = new RuleCuts(enforcing, this.#starts)
    this.needsWhole = rules.hold === 'full' || enforcing.some(({ formula }) => !formula)
    this.#entityAtoms = rules.entities
    this.#asked = readAskedAtoms(enforcing)
    this.#sizes = new SizeCount(this.#asked.size, this.#starts)
    this.#windows = this.#createWindows()
    this.#slowPatterns = SlowPatterns.of(rules, this.#asked.pattern, options, (error) =>
      this.#reportChange(() => this.#fail('unavailable', error)),
    )
    this.#reading = this.#createReading(rules)
    this.#channels = new AnswerChannels((name, isView) => this.#readingOf(name, isView))
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
    return this.#channels.find(name)?.arrivals.countBefore(this.#decided) ?? 0
  }

  lengthOf(name: string): number {
    return this.#channels.find(name)?.arrivals.length ?? 0
  }

  /** How many more characters of a channel are worth adding: of fewer, hardly anything more could be decided. */
  wantedOf(name: string): number {
    const missing = this.#channels.find(name)?.reader?.missing ?? 0
    return Math.min(missing, guardLimits.wantedMost)
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
    this.#seenLength += this.#channels.add(channel, text, this.#reading ? views : [])
    this.#advance()
  }

  /**
   * What the whole text of a channel adds to what has come of it: nothing where they are equal, otherwise a
   * continuation. Null where it says something else.
   */
  restOf(name: string, whole: string): string | null {
    if (this.#ended) return ''
    const channel = this.#channels.find(name)
    // Where no rule reads the text nothing is kept to compare it with, and nothing depends on it.
    return channel && this.#readsText ? restOf(channel, whole) : whole.slice(this.lengthOf(name))
  }

  /** No more text of this reading, if there is any. */
  endView(name: string): void {
    if (this.#channels.find(name)) this.endChannel(name)
  }

  /** No more text of this channel: its last characters can be decided. */
  endChannel(name: string): void {
    const channel = this.#openChannel(name)
    if (!channel || channel.isEnded) return
    this.#channels.end(channel)
    this.#advance()
  }

  /** Ends every channel, in steps: each of them has last characters to be judged. */
  *endChannels(): Steps<void> {
    for (const name of this.#channels.names()) {
      this.endChannel(name)
      yield
    }
  }

  /** The answer is over. Rules without a formula are evaluated from now on, which others do not wait for. */
  end(): void {
    if (this.#state !== 'growing') return
    this.#channels.endAll()
    this.#state = this.needsWhole ? 'complete' : 'decided'
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

  #createReading(rules: AnswerRules<Ending>): AnswerReading | null {
    if (Object.values(this.#asked).every(({ size }) => size === 0)) return null
    return {
      rules,
      asked: this.#asked,
      starts: this.#starts,
      windows: this.#windows?.queues ?? [],
      slowPatterns: this.#slowPatterns,
      entities: this.#createEntityCount(),
      onVerdict: () => this.#reportChange(() => this.#advance()),
      onUnjudged: (order) => this.#windows?.noteUnjudged(order),
    }
  }

  #readingOf(name: string, isView: boolean): AnswerReading | null {
    const reading = this.#reading
    return reading && isView ? { ...reading, entities: this.#createEntityCount(name) } : reading
  }

  #createWindows(): AnswerWindows | null {
    if (this.#asked.score.size === 0) return null
    // Rules that ask for scores where nothing scores can never be decided.
    if (!this.#options.scorers?.length) this.#endWith({ kind: 'unavailable' })
    const onFailure = () => this.#reportChange(() => this.#advance())
    return new AnswerWindows({ ...this.#options, onFailure })
  }

  #openChannel(name: string): Channel | null {
    if (this.#ended) return null
    const known = this.#channels.find(name)
    if (known) return known
    const { growingChannelsMost, channelsMost } = guardLimits
    const isFull =
      this.#channels.growing === growingChannelsMost || this.#channels.size === channelsMost
    const isGrowing = this.#state === 'growing'
    if (this.#readsText && (isFull || !isGrowing)) {
      this.#fail(isGrowing ? 'beyond_limits' : 'unavailable')
      return null
    }
    return this.#channels.open(name)
  }

  async #evaluateWhole() {
    try {
      this.#cuts.noteAtEnd(await this.#options.evaluateAtEnd())
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
    const read = this.#channels.findRead()
    if (read > this.#read) this.#sizes.advance(read, this.#channels.unread)
    this.#read = read
    this.#decided = this.#isWholeKnown ? read : 0
    if (this.#starts.hasNewsBefore(this.#decided)) this.#applyRules(this.#decided)
    if (!this.#ended) this.#endUnjudged()
    if (!this.#ended) this.#letGo()
  }

  /**
   * Nothing from a window without a verdict on may leave. Where a rule matches there or before, that is why: whatever the
   * verdict is, the answer is blocked.
   */
  #endUnjudged() {
    const unjudged = this.#windows?.failure
    if (!unjudged) return
    this.#applyRules(unjudged.from + 1)
    if (!this.#ended) this.#fail('unavailable', unjudged.error)
  }

  /** The rule with the smallest cut before this place blocks, the first of several. */
  #applyRules(before: number) {
    const first = this.#cuts.findFirst(before, this.#channels.origin)
    this.#starts.settle(this.#decided)
    if (!first) return
    const { ending, place, isError } = first
    this.#endWith({ kind: 'block', ending, isError, channel: place.channel, cut: place.offset })
    this.#decided = Math.min(this.#decided, place.order)
    this.stop()
  }

  /** Forgets what is read, and fails when too much is not cleared. */
  #letGo() {
    // While nothing is read there is no need to look at every channel.
    this.#unreadLength =
      this.#read === 0 ? this.#seenLength : this.#channels.forget(this.#read, !this.#isWholeKnown)
    const held = this.#isWholeKnown ? this.#unreadLength : this.#textLength
    this.#heldMost = Math.max(this.#heldMost, held)
    const { heldMostFull, heldMostStreaming } = guardLimits
    if (held > (this.needsWhole ? heldMostFull : heldMostStreaming)) this.#fail('beyond_limits')
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
