import { EscapeDecoder } from '#text/escape-decoder.ts'

/**
 * How much text before a seam or an escape is read once more together with what follows. A match that begins
 * earlier is found only in the texts themselves.
 */
export const tailLength = 1024

/** The texts of an answer that a person reads as one: what the model says, and what it thinks before that. */
export const proseGroup = 'prose'
export const reasoningGroup = 'reasoning'
/** Where the text of an answer is one channel, only what the caller has written of it stands before it. */
export const prefillGroup = (path: string) => `prefill/${path}`

/**
 * A text of an answer in another reading, which has a channel of its own. It only adds to what the text says: it has no size,
 * and what it repeats counts once.
 */
export type TextView = {
  readonly channel: string
  readonly text: string
  /** The place in the text itself where this begins to differ from it. */
  readonly from: number
  /** Whether all of it belongs to that one place; otherwise its characters follow each other from there on. */
  readonly isFlat: boolean
  /** From here on the text has no reading yet, because what follows decides; null where all of it has. */
  readonly readTo: number | null
}

export const isView = (channel: string): boolean => channel.startsWith('?')

/** Whether a reading joins words that stand apart: the numbers of a list make no card number. */
export const joinsWords = (channel: string): boolean => channel.startsWith('?joined/strings/')

/** Cutting a text at every piece would copy it each time. */
const keptLength = 16 * tailLength

const keepTail = (tail: string, more: string): string => {
  const kept = tail + more
  return kept.length > keptLength ? kept.slice(-tailLength) : kept
}

const nothing: readonly TextView[] = []

/** A text that is being read, with at least as much of its end as readings begin with, and its decoder from the first backslash on. */
type Read = { length: number; tail: string; decoder: EscapeDecoder | null; decodedFrom: number }

/** Texts that their reader sees as one, with their end. `last` is the one that has grown last. */
type Joined = {
  tail: string
  last: string
  view: string | null
  viewCount: number
  isOver: boolean
}

/**
 * Reads the texts of one answer in further ways: with JSON escapes decoded, and joined with the text before. Such a reading
 * begins at the first backslash or at a seam, because until then it says the same; it depends on the texts alone, and not on
 * the pieces in which they come.
 */
export class TextViews {
  readonly #before: string
  readonly #read = new Map<string, Read>()
  readonly #joined = new Map<string, Joined>()

  /** `before` is what the caller has written of the answer: its first text goes on there. */
  constructor(before: string) {
    this.#before = before.slice(-tailLength)
  }

  /** What a text adds to what is known of its channel. A whole text repeats what the deltas said. */
  moreOf(channel: string, text: string, kind: 'delta' | 'whole'): string {
    return kind === 'delta' ? text : text.slice(this.lengthOf(channel))
  }

  lengthOf(channel: string): number {
    return this.#read.get(channel)?.length ?? 0
  }

  /** More text of a channel, with its escapes decoded. */
  decode(channel: string, more: string): readonly TextView[] {
    const read = this.#read.get(channel) ?? { length: 0, tail: '', decoder: null, decodedFrom: 0 }
    if (read.length === 0) this.#read.set(channel, read)
    const views = read.decoder
      ? decodeMore(channel, read, more)
      : this.#beginDecoding(channel, read, more)
    read.length += more.length
    if (!read.decoder) read.tail = keepTail(read.tail, more)
    return views
  }

  /** Returns the reading that ends with the channel. */
  end(channel: string): string[] {
    const read = this.#read.get(channel)
    if (!read) return []
    // Its length is still needed: the text may be repeated.
    this.#read.set(channel, { length: read.length, tail: '', decoder: null, decodedFrom: 0 })
    return read.decoder ? [decodedName(channel)] : []
  }

  /**
   * More text of a channel that a person reads together with others of the same `group`; `from` is where it begins. Where the
   * text before is that of another channel, there is a seam.
   */
  join(
    { group, channel, separator = '' }: { group: string; channel: string; separator?: string },
    more: string,
    from: number,
  ): readonly TextView[] {
    const joined = this.#joined.get(group) ?? this.#openGroup(group)
    if (joined.isOver) return nothing
    const isSeam = joined.last !== channel && joined.tail !== ''
    const before = isSeam ? separator : ''
    const begun = isSeam && joined.view === null ? joined.tail.slice(-tailLength) : ''
    if (begun !== '') joined.view = `?joined/${group}/${joined.viewCount++}`
    joined.last = channel
    joined.tail = keepTail(joined.tail, before + more)
    if (joined.view === null) return nothing
    const view = { channel: joined.view, from, readTo: null }
    const repeated = { ...view, text: begun + before, isFlat: true }
    return [...(repeated.text === '' ? [] : [repeated]), { ...view, text: more, isFlat: false }]
  }

  /**
   * Something else follows: returns the reading that ends. What the group says afterwards is a new one, which begins with the
   * end of this one.
   */
  pauseJoined(group: string): string[] {
    const joined = this.#joined.get(group)
    if (!joined) return []
    const ended = joined.view === null ? [] : [joined.view]
    joined.view = null
    joined.last = ''
    joined.isOver = isPrefill(group)
    return ended
  }

  pauseAll(): string[] {
    return [...this.#joined.keys()].flatMap((group) => this.pauseJoined(group))
  }

  /** What the caller wrote of the answer is a text before the first one of the answer, in each of its choices. */
  #openGroup(group: string): Joined {
    const tail = group === proseGroup || isPrefill(group) ? this.#before : ''
    const joined = {
      tail,
      last: '',
      view: null,
      viewCount: 0,
      isOver: isPrefill(group) && tail === '',
    }
    this.#joined.set(group, joined)
    return joined
  }

  #beginDecoding(channel: string, read: Read, more: string): readonly TextView[] {
    const at = more.indexOf('\\')
    if (at === -1) return nothing
    read.decoder = new EscapeDecoder()
    read.decodedFrom = read.length + at
    const tail = (read.tail + more.slice(0, at)).slice(-tailLength)
    const before: TextView = {
      channel: decodedName(channel),
      text: tail,
      from: read.decodedFrom,
      isFlat: true,
      readTo: null,
    }
    return [...(tail === '' ? [] : [before]), ...decodeMore(channel, read, more.slice(at))]
  }
}

const isPrefill = (group: string) => group.startsWith('prefill/')

const decodedName = (channel: string) => `?decoded/${channel}`

function decodeMore(channel: string, { decoder, decodedFrom }: Read, more: string): TextView[] {
  const views: TextView[] = []
  const name = decodedName(channel)
  decoder?.push(more, (text, start) => {
    const from = decodedFrom + start
    views.push({ channel: name, text, from, isFlat: false, readTo: null })
  })
  if (!decoder?.hasBegun) return views
  const readTo = decodedFrom + decoder.decodedTo
  return [...views, { channel: name, text: '', from: readTo, isFlat: true, readTo }]
}
