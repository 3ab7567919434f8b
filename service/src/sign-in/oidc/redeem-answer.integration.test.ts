import {
  type Account,
  clientId,
  clientSecret,
  goThrough,
  type ProviderDouble,
  startProviderDouble,
} from '@gatehouse/tools/testing/provider-double'
import { expect, onTestFinished, test } from 'vitest'

import { type Clock, systemClock } from '#platform/clock.ts'
import { createEgress } from '#platform/egress.ts'
import type { SignInProvider } from '#sign-in/providers/read-sign-in.ts'

import { beginSignIn } from './begin-sign-in.ts'
import type { Flow } from './flow-cookie.ts'
import { createProviderOpener } from './open-provider.ts'
import { redeemAnswer } from './redeem-answer.ts'
import { refreshAccount } from './refresh-account.ts'

const redirectUri = 'https://gateway.example.com/auth/corp/callback'
const ada: Account = {
  email: 'Ada@example.com',
  email_verified: true,
  name: 'Ada',
  groups: ['staff'],
}

const settingsFor = (issuer: string): SignInProvider => ({
  id: 'corp',
  name: 'Corp',
  issuer,
  clientId,
  clientSecret,
  scopes: ['openid', 'profile', 'email', 'offline_access'],
  parameters: { prompt: 'consent' }, // otherwise the double, which is strict, gives no refresh token
  claims: {
    groups: 'groups',
    appRoles: 'roles',
    email: 'email',
    emailVerified: 'email_verified',
    name: 'name',
    hostedDomain: null,
  },
  mappings: [{ trait: 'group', value: 'staff', organizationId: 'org_1', role: 'viewer' }],
})

async function start({
  account = ada,
  now = systemClock,
}: { account?: Account; now?: Clock } = {}) {
  const double = await startProviderDouble({
    redirectUris: [redirectUri],
    accounts: { ada: account },
  })
  onTestFinished(double.stop)
  double.state.current = 'ada'
  return { double, ...openFor([double], now) }
}

function openFor(doubles: readonly Pick<ProviderDouble, 'target'>[], now: Clock = systemClock) {
  const egress = createEgress({ privateTargets: doubles.map(({ target }) => target) })
  onTestFinished(() => egress.close())
  const open = createProviderOpener({ egress, now, steadyNow: now })
  const begin = async ({ issuer }: ProviderDouble) => {
    const provider = settingsFor(issuer)
    const wanted = {
      redirectUri,
      returnTo: '/',
      organizationId: null,
      invitation: null,
      now: now(),
    }
    return beginSignIn(provider, await open(provider), wanted)
  }
  const redeem = async ({ issuer }: ProviderDouble, flow: Flow, answer: URL) => {
    const provider = settingsFor(issuer)
    return redeemAnswer(provider, await open(provider), { flow, answer, now: now() })
  }
  return { open, begin, redeem }
}

const refusal = (reason: string) => expect.objectContaining({ reason })

test('an account is described by the provider that signed it in', async () => {
  const { double, begin, redeem } = await start()
  const { url, flow } = await begin(double)
  expect(url.searchParams.get('code_challenge_method')).toBe('S256')
  const account = await redeem(double, flow, await goThrough(double, url))
  expect(account.identity).toMatchObject({
    subject: 'ada',
    email: 'ada@example.com',
    isEmailVerified: true,
    groups: ['staff'],
  })
  expect(account.refreshToken).not.toBeNull()
  expect(account.idToken).not.toBeNull()
})

test('an answer with another state, and one without any, are refused', async () => {
  const { double, begin, redeem } = await start()
  const { url, flow } = await begin(double)
  const answer = await goThrough(double, url)
  const changed = new URL(answer)
  changed.searchParams.set('state', 'another')
  await expect(redeem(double, flow, changed)).rejects.toEqual(refusal('wrong_state'))
  changed.searchParams.delete('state')
  await expect(redeem(double, flow, changed)).rejects.toEqual(refusal('wrong_state'))
  expect((await redeem(double, flow, answer)).identity.subject).toBe('ada')
})

test('a code that was redeemed is refused, and one that belongs to the flow of another browser', async () => {
  const { double, begin, redeem } = await start()
  const { url, flow } = await begin(double)
  const answer = await goThrough(double, url)
  await redeem(double, flow, answer)
  await expect(redeem(double, flow, answer)).rejects.toEqual(refusal('code_refused'))
  const other = await begin(double)
  const stolen = await goThrough(double, other.url)
  stolen.searchParams.set('state', flow.state)
  await expect(redeem(double, flow, stolen)).rejects.toEqual(refusal('code_refused'))
})

test('a token with the nonce of another flow is refused', async () => {
  const { double, begin, redeem } = await start()
  const { url, flow } = await begin(double)
  const answer = await goThrough(double, url)
  await expect(redeem(double, { ...flow, nonce: 'another' }, answer)).rejects.toEqual(
    refusal('wrong_nonce'),
  )
})

test('an answer of one provider is refused in the flow of another', async () => {
  const { double: honest } = await start()
  const { double: attacker } = await start()
  const { begin, redeem } = openFor([honest, attacker])
  const { flow, url } = await begin(honest)
  const answer = await goThrough(honest, url)
  const mixed = { ...flow, provider: 'attacker' }
  await expect(redeem(attacker, mixed, answer)).rejects.toEqual(refusal('wrong_provider'))
  answer.searchParams.delete('iss')
  await expect(redeem(honest, flow, answer)).rejects.toEqual(refusal('wrong_provider'))
})

test.each([
  [50, null],
  [-50, null],
  [120, 'clocks_apart'],
  [-120, 'clocks_apart'],
])('with clocks %d s apart: %s', async (seconds, reason) => {
  const now = () => new Date(Date.now() + seconds * 1000)
  const { double, begin, redeem } = await start({ now })
  const { url, flow } = await begin(double)
  const redeemed = redeem(double, flow, await goThrough(double, url))
  if (reason) await expect(redeemed).rejects.toEqual(refusal(reason))
  else expect((await redeemed).identity.subject).toBe('ada')
})

test('a provider that refuses the person, and one that is away, are told apart', async () => {
  const { double, begin, redeem } = await start()
  const { url, flow } = await begin(double)
  const answer = await goThrough(double, url)
  const refused = new URL(answer)
  refused.searchParams.delete('code')
  refused.searchParams.set('error', 'access_denied')
  await expect(redeem(double, flow, refused)).rejects.toEqual(refusal('provider_refused'))
  double.state.isAway = true
  await expect(redeem(double, flow, answer)).rejects.toEqual(refusal('provider_unavailable'))
})

test('a provider is asked for its addresses once for many sign-ins, and not at every failure', async () => {
  const clock = { ms: Date.now() }
  const now = () => new Date(clock.ms)
  const { double, begin } = await start({ now })
  await Promise.all(Array.from({ length: 20 }, () => begin(double)))
  expect(double.state.requests).toBe(1)
  double.state.isAway = true
  clock.ms += 11 * 60_000
  await begin(double) // by what is known
  clock.ms += 25 * 60 * 60_000
  const before = double.state.requests
  for (let tries = 0; tries < 5; tries++) {
    await expect(begin(double)).rejects.toEqual(refusal('provider_unavailable'))
  }
  expect(double.state.requests - before).toBe(1)
  double.state.isAway = false
  clock.ms += 6000
  expect((await begin(double)).url.origin).toBe(double.issuer)
})

test('a provider that calls itself by another name is refused', async () => {
  const { double } = await start()
  const target = double.target.replace('127.0.0.1', 'localhost')
  const { open } = openFor([double, { target }])
  await expect(open(settingsFor(`http://${target}`))).rejects.toEqual(refusal('wrong_issuer'))
  await expect(open(settingsFor(`${double.issuer}/tenant`))).rejects.toEqual(
    refusal('provider_unavailable'),
  )
})

test('an account is described anew by its refresh token, until the provider has ended the sign-in', async () => {
  const { double, begin, redeem, open } = await start()
  const { url, flow } = await begin(double)
  const { refreshToken } = await redeem(double, flow, await goThrough(double, url))
  double.accounts.set('ada', { ...ada, groups: ['staff', 'leads'] })
  const provider = settingsFor(double.issuer)
  const refresh = async (token: string) =>
    refreshAccount(provider, await open(provider), { subject: 'ada', refreshToken: token })
  const refreshed = await refresh(refreshToken!)
  expect(refreshed?.identity?.groups).toEqual(['staff', 'leads'])
  expect(refreshed?.refreshToken).not.toBe(refreshToken)
  double.accounts.delete('ada')
  expect(await refresh(refreshed!.refreshToken!)).toBeNull()
})
