import type { FastifyInstance, FastifyRequest } from 'fastify'

import { ApiError } from '#platform/api-error.ts'

import { readJson } from './read-json.ts'

/**
 * One reader for every content type: size is judged first (413, while reading), then the type, then
 * the JSON (G4.1, G4.2). An endpoint without a body schema ignores what was sent (G4.20).
 */
export function readBody(app: FastifyInstance) {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    '*',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, body: Buffer) => {
      request.bodyBytes = body
      const { endpoint, readsOwnBody } = request.routeOptions.config
      if (!endpoint?.body) return undefined
      refuseOtherTypes(request)
      if (readsOwnBody) return undefined
      return readJson(body)
    },
  )
}

function refuseOtherTypes({ headers }: FastifyRequest) {
  const mediaType = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (!/^application\/([\w.-]+\+)?json$/.test(mediaType)) {
    throw new ApiError('invalid_content_type', 'Send the body as Content-Type: application/json.')
  }
  const encoding = headers['content-encoding']?.toLowerCase() ?? 'identity'
  if (encoding !== 'identity') {
    throw new ApiError('invalid_content_type', 'Compressed bodies are not accepted.')
  }
}
