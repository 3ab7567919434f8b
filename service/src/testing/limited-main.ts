import { setTimeout as sleep } from 'node:timers/promises'

import type { Endpoint } from '@gatehouse/contract/endpoint'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'

import { guard, identify } from '#access/guard.ts'
import { requirePermission } from '#access/unauthorized.ts'
import { startApi } from '#api.ts'
import { assemble, type House } from '#assemble.ts'
import { checkStart } from '#check-start.ts'
import { loadConfig } from '#config.ts'
import { bind, route, sendJson } from '#http/bind.ts'
import { setErrorDialect } from '#http/error-dialect.ts'
import { validate } from '#http/validate.ts'
import { stopOnSignals } from '#platform/shutdown.ts'

// The service with one more route: a call that is limited like inference and only waits, so that a test can
// set the reserved and the used tokens exactly. For tests only.

const LimitedBody = z.object({
  /** The reserved tokens; `used` is what the call turns out to use. */
  tokens: z.int().min(0).default(0),
  used: z.int().min(0).optional(),
  holdMs: z.int().min(0).max(600_000).default(0),
})

const endpoint = {
  id: 'limited',
  summary: 'Waits.',
  method: 'POST',
  path: '/v1/chat/completions/limited',
  dialect: 'openai',
  credentials: ['project_key', 'jwt'],
  permission: 'model.invoke',
  bodyLimitBytes: 1024,
  successStatus: 200,
  isIdempotent: false,
  errors: [],
  body: LimitedBody,
  response: z.object({ admitted_at_ms: z.int() }),
} as const satisfies Endpoint

const { body: _, ...bodiless } = endpoint
const creditRead = {
  ...bodiless,
  id: 'creditRead',
  method: 'GET',
  path: '/v1/credits/limited',
  credentials: ['project_key'],
  permission: 'credits.read',
  response: z.object({}),
} as const satisfies Endpoint

function serveLimited(app: FastifyInstance, house: House) {
  void app.register(async (scope) => {
    setErrorDialect(scope, 'openai', house)
    identify(scope, house.access.authentication)
    route(scope, endpoint, async (request, reply) => {
      const principal = request.principal!
      const parsed = LimitedBody.safeParse(request.body)
      const tokens = parsed.data?.tokens ?? 0
      const call = { requestId: request.id, principal, tokens }
      const { headers, slot, refusal } = await house.limits.limitInferenceCall(call)
      void reply.headers(headers)
      const disconnected = new AbortController()
      reply.raw.once('close', () => disconnected.abort())
      try {
        if (refusal) throw refusal
        requirePermission(endpoint, principal)
        const body = validate(LimitedBody, 'body', request.body)
        await sleep(body.holdMs, undefined, { signal: disconnected.signal }).catch(() => undefined)
        await slot?.settle(body.used ?? body.tokens)
        return sendJson(reply, 200, JSON.stringify({ admitted_at_ms: slot?.verdict.nowMs }))
      } finally {
        await slot?.settle(0)
      }
    })
  })
  void app.register(async (scope) => {
    setErrorDialect(scope, 'openai', house)
    guard(scope, house.access.authentication, house.limits.limitCreditRead)
    bind(scope, creditRead, () => ({}))
  })
}

const config = loadConfig(process.env)
const started = await checkStart(config)
const house = assemble(config, { environment: process.env, started })
const api = await startApi(house, (app) => serveLimited(app, house))
stopOnSignals(
  [
    { name: 'api', stop: api.drain },
    { name: 'house', stop: house.stop },
  ],
  house.log,
)
house.hints.subscribe()
process.send?.({ address: api.address, operationsAddress: api.operationsAddress })
