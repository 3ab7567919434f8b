import { pollDevice } from '@gatehouse/contract/pages/pages'
import type { FastifyInstance, FastifyRequest } from 'fastify'

import { hasKeyShape } from '#access/secret.ts'
import { type StartedSession, startSession } from '#access/sessions/start-session.ts'
import { readForm } from '#http/pages/read-form.ts'
import { servePage } from '#http/pages/serve-page.ts'
import { addressPrefix } from '#platform/client-address.ts'
import type { Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'
import { requireBrowser } from '#sign-in/browser-session.ts'
import type { SignInDeps } from '#sign-in/deps.ts'
import { copyProviderSession } from '#sign-in/members/provider-session-store.ts'

import {
  deleteDevice,
  type DeviceRow,
  findConfirmingOwner,
  lockDevice,
  notePoll,
} from './device-store.ts'
import { judgePoll, slowerThan } from './judge-poll.ts'
import { answerProgram, DeviceError } from './oauth-answer.ts'
import { requireClientId } from './request-device.ts'

const grantType = 'urn:ietf:params:oauth:grant-type:device_code'

const messages = {
  authorization_pending: 'No person has confirmed the code yet; ask again after the interval.',
  slow_down: 'Wait five seconds longer between two requests from now on.',
  access_denied: 'The person has refused, or may not sign in any more.',
  expired_token: 'The code has expired; ask for a new one.',
} as const

/** A program asks for its session, again and again, until a person has confirmed it (RFC 8628, 3.4). */
export function servePollDevice(app: FastifyInstance, deps: SignInDeps) {
  servePage(app, pollDevice, (request, reply) => {
    requireBrowser(deps)
    return answerProgram({ request, reply }, () => poll(request, deps), deps)
  })
}

type Outcome = { started: StartedSession } | { refused: keyof typeof messages }

async function poll(request: FastifyRequest, deps: SignInDeps) {
  const form = readForm(request)
  if (form.get('grant_type') !== grantType) {
    throw new DeviceError('unsupported_grant_type', `grant_type must be ${grantType}.`)
  }
  const clientId = requireClientId(form)
  const code = form.get('device_code') ?? ''
  if (!code.startsWith('gate_dev_') || !hasKeyShape(code)) throw unknownCode()
  const address = addressPrefix(request.ip)
  deps.linkGuesses.refuseBlocked(address)
  const hashes = deps.hashKey(code).map(({ hash }) => hash)
  const now = deps.now()
  const outcome = await transact(deps.db, async (tx): Promise<Outcome | null> => {
    const device = await lockDevice(tx, { hashes, clientId })
    return device ? answerPoll(tx, device, { requestId: request.id, now }, deps) : null
  })
  if (!outcome) {
    deps.linkGuesses.note(address, hashes[0]?.toString('base64') ?? '')
    throw unknownCode()
  }
  if ('refused' in outcome) throw new DeviceError(outcome.refused, messages[outcome.refused])
  const { token, expiresAt } = outcome.started
  const seconds = Math.floor((expiresAt.getTime() - now.getTime()) / 1000)
  deps.metrics.signIns.inc({ result: 'signed_in' })
  return { access_token: token, token_type: 'Bearer', expires_in: seconds }
}

/** The device is gone with the commit that starts its session: a code gives one session, whatever happens. */
async function answerPoll(
  tx: Tx,
  device: DeviceRow,
  { requestId, now }: { requestId: string; now: Date },
  deps: SignInDeps,
): Promise<Outcome> {
  const judgement = judgePoll(device, now)
  if (judgement === 'expired_token') return { refused: judgement }
  if (judgement === 'confirmed') {
    const owner = await findConfirmingOwner(tx, device, now)
    const start = { form: 'token', method: 'device', requestId, now } as const
    const started = owner && (await startSession(tx, { owner, ...start }, deps))
    await deleteDevice(tx, device)
    if (!owner || !started) return { refused: 'access_denied' }
    const from = device.session_id ?? ''
    const { organizationId } = owner
    await copyProviderSession(tx, { organizationId, from, to: started.id, at: now })
    return { started }
  }
  const { interval_seconds: current } = device
  const intervalSeconds = judgement === 'slow_down' ? slowerThan(current) : current
  await notePoll(tx, device, { at: now, intervalSeconds })
  return { refused: judgement }
}

const unknownCode = () =>
  new DeviceError('invalid_grant', 'The device_code is unknown or was used; ask for a new one.')
