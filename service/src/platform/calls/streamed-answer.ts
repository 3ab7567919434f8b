import type { AnswerHeaders, AnswerReceiver, Exchange } from './exchange.ts'

/** Once this many bytes wait for the reader, the connection is not read either. */
const waitingMaxBytes = 64 * 1024

/**
 * An answer that is read while it arrives. What arrives in one turn of the event loop is taken at once, however many
 * chunks it came in: a reader awaits `arrival` once per turn and not once per chunk.
 */
export class StreamedAnswer implements AnswerReceiver {
  /** 0 until the head has arrived. */
  status = 0
  /** Whether the origin may have got the request. */
  isSent = false
  headers: AnswerHeaders = {}
  #chunks: Buffer[] = []
  #waitingBytes = 0
  #failure: Error | undefined
  #hasEnded = false
  #exchange: Exchange | undefined
  #wake: (() => void) | undefined
  #isDiscarding = false
  #discardMaxBytes = 0

  /** Resolves when the status and the headers have arrived. */
  async head(): Promise<void> {
    while (this.status === 0) {
      if (this.#failure) throw this.#failure
      await this.arrival()
    }
  }

  /** Resolves when something has arrived: the head, bytes, the end or a failure. For one reader at a time. */
  arrival(): Promise<void> {
    return new Promise((resolve) => this.onArrival(resolve))
  }

  /** Calls back once, when something has arrived. For one reader at a time. */
  onArrival(read: () => void) {
    this.#wake = read
  }

  /**
   * Everything that has arrived since the last call; undefined if that is nothing. Throws when the answer has failed,
   * after what arrived before.
   */
  take(): Buffer | undefined {
    const [first] = this.#chunks
    if (first === undefined) {
      if (this.#failure) throw this.#failure
      return undefined
    }
    const isOne = this.#chunks.length === 1
    const bytes = isOne ? first : Buffer.concat(this.#chunks, this.#waitingBytes)
    this.#chunks = []
    this.#waitingBytes = 0
    this.#exchange?.resume()
    return bytes
  }

  /** Whether the answer is complete and everything was taken. */
  get isRead(): boolean {
    return this.#hasEnded && this.#chunks.length === 0
  }

  /** Gives up the rest of the answer and closes its connection. */
  destroy() {
    this.#exchange?.cancel(new Error('The answer was not read to its end.'))
  }

  /** Fails with its timeout if the rest takes longer. */
  endWithin(restMs: number) {
    this.#exchange?.endWithin(restMs)
  }

  /** Reads and discards the rest, so that the connection can be used again; it closes if that is too much work. */
  discard(rest: { maxBytes: number; maxMs: number }) {
    this.#isDiscarding = true
    this.#discardMaxBytes = rest.maxBytes - this.#waitingBytes
    this.#chunks = []
    this.#waitingBytes = 0
    this.#exchange?.outliveCaller(rest.maxMs)
    this.#exchange?.resume()
  }

  onStart(exchange: Exchange) {
    this.#exchange = exchange
  }

  onSent() {
    this.isSent = true
  }

  onHead(status: number, headers: AnswerHeaders) {
    this.status = status
    this.headers = headers
    this.#wakeReader()
  }

  onBytes(bytes: Buffer) {
    if (this.#isDiscarding) {
      this.#discardMaxBytes -= bytes.length
      if (this.#discardMaxBytes < 0) this.destroy()
      return
    }
    this.#chunks.push(bytes)
    this.#waitingBytes += bytes.length
    if (this.#waitingBytes >= waitingMaxBytes) this.#exchange?.pause()
    this.#wakeReader()
  }

  onEnd() {
    this.#hasEnded = true
    this.#wakeReader()
  }

  onFailure(error: Error) {
    this.#failure = error
    this.#wakeReader()
  }

  #wakeReader() {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }
}
