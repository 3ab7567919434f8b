import { confirmDevice, showDevice } from '@gatehouse/contract/pages/pages'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import { requireOwnPage } from '#access/sessions/session-cookie.ts'
import { readForm } from '#http/pages/read-form.ts'
import { sendHtml, sendOn, servePage } from '#http/pages/serve-page.ts'
import type { Principal } from '#http/principal.ts'
import { addressPrefix } from '#platform/client-address.ts'
import { transact } from '#platform/transaction.ts'
import { findOrganizationName, findSignedIn, requireBrowser } from '#sign-in/browser-session.ts'
import type { SignInDeps } from '#sign-in/deps.ts'

import { answeredPage, codePage, questionPage } from './confirm-pages.ts'
import { answerDevice, type DeviceRow, findByUserCode } from './device-store.ts'
import { readUserCode } from './user-code.ts'

const signInFirst = `/auth/sign_in?return_to=${showDevice.path}`
const unknown =
  'No device waits with this code. It may be mistyped, used or older than 10 minutes: compare it, or start again on the device.'

/** A person who has signed in says whether a program may act for them (RFC 8628, 3.3). */
export function serveConfirmDevice(app: FastifyInstance, deps: SignInDeps) {
  servePage(app, showDevice, async (request, reply) => {
    const caller = await findSignedIn(request, deps)
    return caller ? sendHtml(reply, codePage(caller)) : sendOn(reply, signInFirst)
  })
  servePage(app, confirmDevice, async (request, reply) => {
    const browser = requireBrowser(deps)
    const caller = await findSignedIn(request, deps)
    if (!caller) return sendOn(reply, signInFirst)
    const form = readForm(request)
    requireOwnPage(request, caller, browser, form.get('csrf'))
    request.line.organization_id = caller.organizationId
    const userCode = readUserCode(form.get('user_code') ?? '')
    const device = userCode === undefined ? undefined : await find(userCode, request, caller, deps)
    if (userCode === undefined || !device) return refuseCode(request, reply, caller, deps)
    const decision = form.get('decision')
    if (decision === 'allow' || decision === 'refuse') {
      const isAllowed = decision === 'allow'
      const isAnswered = await answer(device, { isAllowed, caller, request }, deps)
      if (!isAnswered) return refuseCode(request, reply, caller, deps)
      return sendHtml(reply, answeredPage(isAllowed))
    }
    const hours = Math.round(deps.sessionMaxMs / 360_000) / 10
    const organization = await findOrganizationName(caller.organizationId, deps)
    const question = { device, userCode, organization, hours, now: deps.now() }
    return sendHtml(reply, questionPage(caller, question))
  })
}

async function find(
  userCode: string,
  { ip }: FastifyRequest,
  { organizationId: organization, session }: Principal,
  { db, now, hashKey, codeGuesses }: SignInDeps,
): Promise<DeviceRow | undefined> {
  const guesser = { session: session?.id ?? '', address: addressPrefix(ip), organization }
  const takeBack = codeGuesses.take(guesser)
  const hashes = hashKey(userCode).map(({ hash }) => hash)
  const device = await findByUserCode(db, hashes, now())
  if (device) takeBack()
  return device
}

type Given = { isAllowed: boolean; caller: Principal; request: FastifyRequest }

/** False: another answer was first. */
async function answer(
  device: DeviceRow,
  { isAllowed, caller, request }: Given,
  deps: SignInDeps,
): Promise<boolean> {
  const now = deps.now()
  const { organizationId: organization_id, session } = caller
  const given = isAllowed ? { organization_id, session_id: session?.id ?? '' } : { refused_at: now }
  const isAnswered = await transact(deps.db, (tx) => answerDevice(tx, device, given, now))
  if (isAnswered && !isAllowed) await record('access_denied', caller, request, deps)
  return isAnswered
}

async function refuseCode(
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Principal,
  deps: SignInDeps,
) {
  request.line.code = 'unknown_user_code'
  await record('unknown_user_code', caller, request, deps)
  return sendHtml(reply, codePage(caller, unknown), 400)
}

const record = (
  reason: string,
  { organizationId, member }: Principal,
  { id: requestId }: FastifyRequest,
  { recordRefusal }: SignInDeps,
) =>
  recordRefusal({
    organizationId,
    ...(member && { memberId: member.id }),
    method: 'device',
    reason,
    requestId,
  })
