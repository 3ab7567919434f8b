import type { Arrivals } from './arrivals.ts'
import type { Place } from './atom-starts.ts'
import type { AnswerReading } from './channel-reader.ts'
import { addView, type Channel, createChannel, type View } from './channel.ts'

/** What reads the text of a channel; views have counts of personal data of their own. Null where no rule reads texts. */
type ReadingOf = (name: string, isView: boolean) => AnswerReading | null

/** The texts of an answer on their way past the guard, and the order in which their characters arrived. */
export class AnswerChannels {
  readonly #readingOf: ReadingOf
  readonly #channels = new Map<string, Channel>()
  /** Channels with characters that are not read to the end of what they may mean. */
  readonly unread = new Set<Channel>()
  #growing = 0
  /** How many characters and ends of channels have arrived. */
  #order = 0
  #origin: Place = { order: 0, channel: '', offset: 0 }

  constructor(readingOf: ReadingOf) {
    this.#readingOf = readingOf
  }

  get size(): number {
    return this.#channels.size
  }

  /** How many of them grow. */
  get growing(): number {
    return this.#growing
  }

  /** Where the answer begins. */
  get origin(): Place {
    return this.#origin
  }

  get order(): number {
    return this.#order
  }

  names(): Iterable<string> {
    return this.#channels.keys()
  }

  find(name: string): Channel | undefined {
    return this.#channels.get(name)
  }

  open(name: string): Channel {
    this.#growing++
    return this.#create(name, false)
  }

  /** More text of a channel, with its other readings. Returns how many characters rules see of it. */
  add(channel: Channel, text: string, views: readonly View[]): number {
    channel.arrivals.add(text, this.#takeOrder(channel, text.length))
    this.unread.add(channel)
    const normalised = channel.reader?.add(text) ?? text.length
    channel.waiting.add(text.length, normalised)
    for (const view of views) this.#addView(view, channel.arrivals)
    return Math.min(text.length, normalised)
  }

  end(channel: Channel) {
    channel.isEnded = true
    channel.unreadOrder = Infinity
    if (!channel.isView) this.#growing--
    this.unread.add(channel)
    const order = this.#takeOrder(channel, 1)
    channel.reader?.end(order)
  }

  endAll() {
    for (const channel of this.#channels.values()) if (!channel.isEnded) this.end(channel)
    // The end of an answer counts like a character: an empty answer can be blocked there.
    this.#order++
  }

  /** No later text changes what rules say of everything that arrived before. */
  findRead(): number {
    let read = this.#order
    for (const { reader, unreadOrder } of this.unread) {
      if (reader) read = Math.min(read, reader.decidedOrder, unreadOrder)
    }
    return read
  }

  /** Forgets what arrived before `read`. Returns how many characters, of those that rules see, came after it. */
  forget(read: number, mayBeCut: boolean): number {
    let unread = 0
    for (const channel of this.unread) {
      const { arrivals, waiting } = channel
      const count = arrivals.countBefore(read)
      unread += waiting.from(count)
      if (!mayBeCut) arrivals.forget(count)
      if (count < arrivals.length || channel.unreadOrder < Infinity) continue
      // A search may still find a match that begins where the channel has ended.
      if (channel.isEnded && channel.reader && channel.reader.decidedOrder < Infinity) continue
      this.unread.delete(channel)
      if (channel.isEnded) channel.reader = null
    }
    return unread
  }

  #addView(view: View, arrivals: Arrivals) {
    const channel = this.#channels.get(view.channel) ?? this.#create(view.channel, true)
    addView(channel, view, arrivals)
    this.unread.add(channel)
  }

  #create(name: string, isView: boolean): Channel {
    const channel = createChannel(name, this.#readingOf(name, isView), isView)
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
}
