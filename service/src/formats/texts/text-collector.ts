import type { Json } from '#formats/answer.ts'

import type { FrameText, FrameTexts } from './frame-texts.ts'
import { JsonTexts } from './json-texts.ts'
import {
  prefillGroup,
  proseGroup,
  reasoningGroup,
  tailLength,
  type TextView,
  TextViews,
} from './text-views.ts'
import { visitStrings } from './visit-strings.ts'

/** What was appended to a channel; `isJson` where the strings inside it are the texts. */
type Delta = { channel: string; isJson: boolean; group?: string | undefined }

/**
 * How a text stands to the prose of an answer: a person reads it together with others of its group, it stands between two
 * texts of prose, or it stands beside them, as a source does.
 */
type Standing = { group: string; channel: string; separator?: string } | 'between' | 'beside'

const noViews: readonly TextView[] = []

/** As much of what frames repeat is remembered; more of it is read anew each time. */
const othersMaxLength = 1024 * 1024

/** The channel whose text goes on in this one; itself where it is the first of its text. */
export const originOf = (channel: string): string => channel.replace(/~+$/, '')

/**
 * Collects the texts of one answer, frame by frame. A channel is a path such as `0/text`; everything whose path begins
 * with `0/` ends with the block 0.
 */
export class TextCollector {
  #texts: FrameText[] = []
  #ended: string[] = []
  #hasUnreadable = false
  /** Channels that have text and have not ended. */
  readonly #open = new Set<string>()
  readonly #json = new Map<string, JsonTexts>()
  readonly #visitor = {
    onText: (text: string) => this.addOther(text),
    onUnreadable: () => this.noteUnreadable(),
  }
  #otherCount = 0
  /** The channels in which texts go on that were taken to have ended, and the ends of such texts. */
  readonly #resumed = new Map<string, string>()
  readonly #tails = new Map<string, string>()
  /** Texts that no delta brought. */
  readonly #others = new Set<string>()
  #othersLength = 0
  /** The deltas of the last frame, without those that are empty. */
  #deltas: Delta[] = []
  readonly #views: TextViews
  /** Of the last text; null where it has none. */
  #group: string | null = null

  /** `before` is what the caller has written of the answer. */
  constructor(before = '') {
    this.#views = new TextViews(before)
  }

  begin() {
    this.#texts = []
    this.#ended = []
    this.#hasUnreadable = false
  }

  take(): FrameTexts {
    return { texts: this.#texts, ended: this.#ended, hasUnreadable: this.#hasUnreadable }
  }

  /**
   * Text of a channel; returns whether it is text. A person reads the texts of one `group` as one: those that are in no group
   * stand between them.
   */
  add(channel: string, text: unknown, kind: FrameText['kind'], group?: string): boolean {
    if (typeof text !== 'string') return false
    if (kind === 'delta' && text !== '') this.#deltas.push({ channel, isJson: false, group })
    this.#push(channel, text, kind, group === undefined ? 'between' : { group, channel })
    return true
  }

  /**
   * More of a text that may go on after it was taken to have ended. What comes then is another channel, which repeats the end
   * of the text: a match across the gap is found, though what stands before the gap may have left already.
   */
  addResumable(channel: string, text: string, group?: string): boolean {
    const current = this.#resumed.get(channel) ?? channel
    const tail = this.#tails.get(current) ?? ''
    if (text === '' || tail === '' || this.#open.has(current)) {
      this.#tails.set(current, tail)
      return this.add(current, text, 'delta', group)
    }
    const next = `${current}~`
    this.#resumed.set(channel, next)
    this.#tails.delete(current)
    this.#tails.set(next, '')
    return this.add(next, tail + text, 'delta')
  }

  /** JSON text of a channel, such as the arguments of a call: every string inside it is a channel of its own. */
  addJson(channel: string, json: unknown, kind: FrameText['kind']): boolean {
    if (typeof json !== 'string') return false
    if (kind === 'delta' && json !== '') this.#deltas.push({ channel, isJson: true })
    const known = kind === 'delta' ? this.#json.get(channel) : undefined
    const decoder = known ?? new JsonTexts()
    if (kind === 'delta') this.#json.set(channel, decoder)
    decoder.feed(json, {
      add: (number, text) => this.#addString(channel, `${channel}#${number}`, text, kind),
      end: (number) => this.#end(`${channel}#${number}`),
    })
    if (kind === 'whole') this.#pauseStrings(channel)
    return true
  }

  /** The input of a call that came as an object: it is judged like the JSON text that others send. */
  addInput(channel: string, input: unknown, kind: FrameText['kind']): boolean {
    if (typeof input !== 'object' || input === null) return false
    try {
      return this.addJson(channel, JSON.stringify(input), kind)
    } catch {
      // It is nested too deeply to be written; the strings in it can still be visited.
      return false
    }
  }

  /**
   * A text that ends where it stands. Streams repeat such a text in many frames and a plain answer does not, so it counts
   * once: otherwise the size of an answer would depend on how it was sent. The frame that had it first leaves first.
   */
  addOther(text: string) {
    if (this.#others.has(text)) return
    this.#othersLength += text.length
    if (this.#othersLength <= othersMaxLength) this.#others.add(text)
    const channel = this.newChannel()
    this.#push(channel, text, 'whole', 'beside')
    this.#end(channel)
  }

  /** Reads every member of an object. Where `read` returns false, each string of the member is a text of its own. */
  addMembers(object: Json, read: (name: string, value: unknown) => boolean) {
    for (const name of Object.keys(object)) {
      const value = object[name]
      if (value !== null && !read(name, value)) this.addStrings(name, value)
    }
  }

  /** Every string in a value of an unknown form, each as a text of its own. */
  addStrings(name: string, value: unknown) {
    visitStrings(name, value, this.#visitor)
  }

  noteUnreadable(): true {
    this.#hasUnreadable = true
    return true
  }

  /** A channel that no other text has. */
  newChannel(): string {
    return `other${this.#otherCount++}`
  }

  /** Ends the channels at a path and below it. */
  endAt(path: string) {
    this.#ended.push(...this.#views.pauseJoined(prefillGroup(path)))
    for (const channel of this.#open) if (isAt(channel, path)) this.#end(channel)
    for (const channel of this.#json.keys()) if (isAt(channel, path)) this.#endJson(channel)
  }

  /** Ends every channel at a path but those of `kept`. The texts of JSON say themselves where they end. */
  endOthers(path: string, kept: string) {
    for (const channel of this.#open) {
      if (isAt(channel, path) && !isAt(channel, kept) && !channel.includes('#')) this.#end(channel)
    }
    // More of the arguments of a call would be read word by word only.
    for (const channel of this.#json.keys()) {
      if (isAt(channel, path) && !isAt(channel, kept)) this.#pauseStrings(channel)
    }
    if (kept !== `${path}/content`) this.#ended.push(...this.#views.pauseJoined(prefillGroup(path)))
  }

  endAll() {
    for (const channel of this.#open) this.#end(channel)
    this.#json.clear()
    this.#ended.push(...this.#views.pauseAll())
  }

  forgetDeltas() {
    this.#deltas = []
  }

  /**
   * The channel to which `repeat` adds a text as it is and ends nothing, so that several texts can be repeated as one. Undefined where
   * the strings inside it are texts of their own, or where something else has been read since.
   */
  get repeatedChannel(): string | undefined {
    const delta = this.#deltas[0]
    if (!delta || this.#deltas.length > 1 || delta.isJson) return undefined
    return (delta.group ?? null) === this.#group ? delta.channel : undefined
  }

  /**
   * Reads a frame that is the last one with another text in its delta. False if there was not exactly one delta: then
   * the frame must be parsed. Its other texts are those of the last frame, so they have been collected already.
   */
  repeat(text: string): boolean {
    const delta = this.#deltas[0]
    if (!delta || this.#deltas.length > 1) return false
    const { channel, group } = delta
    if (!delta.isJson) {
      this.#push(channel, text, 'delta', group === undefined ? 'between' : { group, channel })
      return true
    }
    this.#deltas = []
    return this.addJson(channel, text, 'delta')
  }

  /** A string inside JSON. Lists of words are also read as the sentence that they make. */
  #addString(json: string, channel: string, text: string, kind: FrameText['kind']) {
    this.#push(channel, text, kind, { group: `strings/${json}`, channel, separator: ' ' })
  }

  #push(channel: string, text: string, kind: FrameText['kind'], stands: Standing) {
    if (text === '') return
    this.#open.add(channel)
    const views = this.#read(channel, text, kind, stands)
    this.#texts.push(views.length === 0 ? { channel, text, kind } : { channel, text, kind, views })
    const tail = this.#tails.get(channel)
    if (tail !== undefined) this.#tails.set(channel, (tail + text).slice(-tailLength))
  }

  /** What is new in the text, in other readings. */
  #read(
    channel: string,
    text: string,
    kind: FrameText['kind'],
    stands: Standing,
  ): readonly TextView[] {
    const more = this.#views.moreOf(channel, text, kind)
    if (more === '') return noViews
    const from = this.#views.lengthOf(channel)
    const decoded = this.#views.decode(channel, more)
    const joined = typeof stands === 'object' ? this.#views.join(stands, more, from) : noViews
    if (stands !== 'beside') this.#goOn(typeof stands === 'object' ? stands.group : null)
    return decoded.length + joined.length === 0 ? noViews : [...decoded, ...joined]
  }

  /** What stands between two texts of a group ends their reading. */
  #goOn(own: string | null) {
    if (own === this.#group) return
    this.#group = own
    for (const group of [proseGroup, reasoningGroup]) {
      if (group !== own) this.#ended.push(...this.#views.pauseJoined(group))
    }
  }

  #endJson(channel: string) {
    this.#json.delete(channel)
    this.#pauseStrings(channel)
  }

  #pauseStrings(channel: string) {
    this.#ended.push(...this.#views.pauseJoined(`strings/${channel}`))
  }

  #end(channel: string) {
    if (!this.#open.delete(channel)) return
    this.#ended.push(channel, ...this.#views.end(channel))
  }
}

const isAt = (channel: string, path: string) =>
  channel === path || (channel.startsWith(path) && ['/', '~'].includes(channel[path.length] ?? ''))
