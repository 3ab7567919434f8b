import type { FastifyInstance } from 'fastify'

import { html } from '#http/pages/html.ts'
import { sendHtml, setHeaders } from '#http/pages/serve-page.ts'
import type { Log } from '#platform/log.ts'
import { toApiError } from '#platform/to-api-error.ts'

import { layout, warning } from './layout.ts'

/** Errors of these routes are pages, too. */
export function setPageErrors(app: FastifyInstance, log: Log) {
  app.setErrorHandler((thrown, request, reply) => {
    const error = toApiError(thrown)
    if (error.status >= 500 && thrown !== error) log.problem(error.code, thrown, request.id)
    request.line.code = error.code
    const body = html`${warning(error.message)}
      <p class="faint">Request ${request.id}</p>
      <p><a href="/auth/sign_in">Sign in</a></p>`
    setHeaders(reply).headers(error.headers)
    return sendHtml(reply, layout({ title: 'That did not work', body }), error.status)
  })
}
