import type { Page } from '@gatehouse/contract/pages/pages'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import { unavailable } from '#platform/api-error.ts'
import { within } from '#platform/deadline.ts'

import type { Html } from './html.ts'

const answerMaxMs = 20_000
const tookTooLong = () => unavailable('The page took too long; load it again.')

/**
 * What a browser may do with a page: show it, alone, with what this gateway serves. Nothing is inline, so that no text in a page
 * can become a script.
 */
const strictHeaders = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

type Answer = (
  request: FastifyRequest,
  reply: FastifyReply,
  signal: AbortSignal,
) => Promise<unknown> | FastifyReply

/** Registers the route of a page of the contract. Its answers are never stored by a cache. */
export function servePage(app: FastifyInstance, page: Page, answer: Answer) {
  app.route({
    method: page.method,
    url: page.path,
    bodyLimit: page.bodyLimitBytes,
    config: { page },
    handler: (request, reply) =>
      within(answerMaxMs, tookTooLong, async (signal) =>
        answer(request, setHeaders(reply), signal),
      ),
  })
}

export const setHeaders = (reply: FastifyReply) => reply.headers(strictHeaders)

export function sendHtml(reply: FastifyReply, { text }: Html, status = 200) {
  return reply.status(status).type('text/html; charset=utf-8').send(text)
}

/** Sends the browser on with GET, whatever the method was. */
export const sendOn = (reply: FastifyReply, path: string) =>
  reply.status(303).header('location', path).send()

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The page of the contract that a route serves, if it serves no endpoint. */
    page?: Page
  }
}
