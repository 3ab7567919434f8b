import type { AnswerHeaders, AnswerReceiver, Exchange } from './exchange.ts'

/** A whole answer. */
export type OriginAnswer = {
  status: number
  headers: AnswerHeaders
  /** At most as many bytes as were asked for. */
  body: Buffer
  /** False if there was more. */
  isComplete: boolean
}

/** Reads an answer into one buffer. Where it has more than `maxBytes`, the rest is not read. */
export class CollectedAnswer implements AnswerReceiver {
  readonly #maxBytes: number
  readonly #resolve: (answer: OriginAnswer) => void
  readonly #reject: (error: Error) => void
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #status = 0
  #headers: AnswerHeaders = {}
  #exchange: Exchange | undefined

  constructor(
    maxBytes: number,
    resolve: (answer: OriginAnswer) => void,
    reject: (error: Error) => void,
  ) {
    this.#maxBytes = maxBytes
    this.#resolve = resolve
    this.#reject = reject
  }

  onStart(exchange: Exchange) {
    this.#exchange = exchange
  }

  onSent() {}

  onHead(status: number, headers: AnswerHeaders) {
    this.#status = status
    this.#headers = headers
  }

  onBytes(bytes: Buffer) {
    this.#chunks.push(bytes)
    this.#bytes += bytes.length
    if (this.#bytes <= this.#maxBytes) return
    this.#finish(false)
    this.#exchange?.cancel(new Error('The answer is larger than what is read of it.'))
  }

  onEnd() {
    this.#finish(true)
  }

  /** Without effect on an answer that was too large: its promise is resolved. */
  onFailure(error: Error) {
    this.#reject(error)
  }

  #finish(isComplete: boolean) {
    const [first] = this.#chunks
    const isOne = this.#chunks.length === 1 && first && isComplete
    const length = Math.min(this.#bytes, this.#maxBytes)
    const body = isOne ? first : Buffer.concat(this.#chunks, length)
    this.#resolve({ status: this.#status, headers: this.#headers, body, isComplete })
  }
}
