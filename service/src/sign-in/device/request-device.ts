import { randomBytes } from 'node:crypto'

import { requestDevice } from '@gatehouse/contract/pages/pages'
import type { FastifyInstance, FastifyRequest } from 'fastify'

import { formatKey } from '#access/secret.ts'
import { readForm } from '#http/pages/read-form.ts'
import { servePage } from '#http/pages/serve-page.ts'
import { addressPrefix } from '#platform/client-address.ts'
import { transact } from '#platform/transaction.ts'
import { requireBrowser } from '#sign-in/browser-session.ts'
import type { SignInDeps } from '#sign-in/deps.ts'

import { countWaiting, insertDevice } from './device-store.ts'
import { answerProgram, DeviceError } from './oauth-answer.ts'
import { createUserCode } from './user-code.ts'

const lifetimeSeconds = 10 * 60
const intervalSeconds = 5
/** How many devices may wait, from one address and from all together. Requests at the same time may pass them by a few. */
const waitingMax = { address: 30, all: 10_000 }

/** A program without a browser asks for a session. Nothing is given to it until a person has confirmed its code (RFC 8628, 3.1). */
export function serveRequestDevice(app: FastifyInstance, deps: SignInDeps) {
  servePage(app, requestDevice, (request, reply) => {
    const { publicUrl } = requireBrowser(deps)
    return answerProgram({ request, reply }, () => addDevice(request, publicUrl, deps), deps)
  })
}

async function addDevice(request: FastifyRequest, publicUrl: string, deps: SignInDeps) {
  const form = readForm(request)
  const clientId = requireClientId(form)
  const deviceName = readDeviceName(form.get('device_name'))
  const address = addressPrefix(request.ip)
  const now = deps.now()
  const deviceCode = formatKey('gate_dev_', randomBytes(32))
  const userCode = await transact(deps.db, async (tx) => {
    for (const [of, max] of [
      [address, waitingMax.address],
      [null, waitingMax.all],
    ] as const) {
      if ((await countWaiting(tx, { address: of, now, max })) >= max) throw tooManyWaiting()
    }
    for (let tries = 0; tries < 5; tries++) {
      const code = createUserCode()
      const isAdded = await insertDevice(tx, {
        device_hash: deps.hashKey(deviceCode)[0].hash,
        user_hash: deps.hashKey(code)[0].hash,
        client_id: clientId,
        device_name: deviceName,
        address,
        interval_seconds: intervalSeconds,
        created_at: now,
        expires_at: new Date(now.getTime() + lifetimeSeconds * 1000),
      })
      if (isAdded) return code
    }
    throw tooManyWaiting()
  })
  const page = `${publicUrl}/auth/device`
  return {
    device_code: deviceCode,
    user_code: userCode,
    verification_uri: page,
    // Behind the #, so that no log of a server has the code.
    verification_uri_complete: `${page}#${userCode}`,
    expires_in: lifetimeSeconds,
    interval: intervalSeconds,
  }
}

export function requireClientId(form: ReadonlyMap<string, string>): string {
  const clientId = form.get('client_id') ?? ''
  if (/^[A-Za-z0-9._-]{1,64}$/.test(clientId)) return clientId
  throw new DeviceError(
    'invalid_client',
    'client_id must name the program, with 1 to 64 letters, digits, dots, hyphens or underscores.',
  )
}

/** What the device calls itself, for the person who confirms it. Nothing that could break a line or turn it round. */
function readDeviceName(text = ''): string | null {
  const name = text.trim()
  if (name === '') return null
  if (/^[^\p{C}\p{Zl}\p{Zp}]{1,80}$/u.test(name)) return name
  throw new DeviceError('invalid_request', 'device_name must have 1 to 80 characters.')
}

const tooManyWaiting = () =>
  new DeviceError('slow_down', 'Too many devices wait for their sign-in; try again later.', 429)
