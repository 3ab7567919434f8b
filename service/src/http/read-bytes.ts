import type { IncomingMessage } from 'node:http'

import { ApiError } from '#platform/api-error.ts'
import { ClientGone } from '#platform/client-gone.ts'

import type { Reservation } from './body-budget.ts'
import type { PaceWatch } from './pace-watch.ts'

type Options = { maxBytes: number; reservation: Reservation; paceWatch: PaceWatch }

const firstBytes = 1024

/**
 * Reads a body into one buffer that grows as bytes arrive. However small the chunks are, the buffer is at most twice as large
 * as what has arrived, and never larger than the reservation. A declared length is reserved at once, an undeclared one as the
 * body grows.
 */
export async function readBytes(message: IncomingMessage, options: Options): Promise<Buffer> {
  const { maxBytes, reservation, paceWatch } = options
  if (message.destroyed) throw new ClientGone() // its events have been emitted already
  const declared = readDeclaredLength(message)
  if (declared !== undefined && declared > maxBytes) throw tooLarge(maxBytes)
  if (!reservation.grow(declared ?? firstBytes)) throw noRoom()
  let buffer = Buffer.allocUnsafeSlow(Math.min(firstBytes, declared ?? firstBytes))
  let received = 0

  function append(chunk: Buffer) {
    const length = received + chunk.length
    if (length > maxBytes) throw tooLarge(maxBytes)
    if (length > buffer.length) {
      const capacity = Math.min(Math.max(length, 2 * buffer.length), declared ?? maxBytes)
      if (declared === undefined && !reservation.grow(capacity)) throw noRoom()
      const larger = Buffer.allocUnsafeSlow(Math.max(capacity, length))
      buffer.copy(larger, 0, 0, received)
      buffer = larger
    }
    chunk.copy(buffer, received)
    received = length
  }

  await new Promise<void>((resolve, reject) => {
    const stop = (settle: () => void) => {
      unwatch()
      message.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone)
      settle()
    }
    const onData = (chunk: Buffer) => {
      try {
        append(chunk)
      } catch (error) {
        stop(() => reject(error))
      }
    }
    const onEnd = () => stop(resolve)
    const onGone = () => stop(() => reject(new ClientGone()))
    const unwatch = paceWatch.add({
      received: () => received,
      onTooSlow: () => stop(() => reject(tooSlow())),
    })
    message.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone)
  })
  return buffer.subarray(0, received)
}

/** Undefined for a chunked body. Node has already refused a length that is no number, and a body with both. */
function readDeclaredLength({ headers }: IncomingMessage): number | undefined {
  if (headers['transfer-encoding'] !== undefined) return undefined
  return Number(headers['content-length'] ?? 0)
}

const tooLarge = (maxBytes: number) =>
  new ApiError('request_too_large', `The body is larger than ${maxBytes} bytes.`)

const noRoom = () =>
  new ApiError('overloaded', 'Too many large requests are being received; retry later.')

const tooSlow = () =>
  new ApiError('request_timeout', 'The body arrived too slowly; send at least 16 KiB a second.')
