import { readStyle } from '@gatehouse/contract/pages/pages'
import type { FastifyInstance } from 'fastify'

import { servePage } from '#http/pages/serve-page.ts'
import { readTextAsset } from '#platform/assets.ts'

/** What the pages load besides themselves. */
export function serveStaticFiles(app: FastifyInstance) {
  const style = readTextAsset('sign-in.css')
  servePage(app, readStyle, (_, reply) => reply.type('text/css; charset=utf-8').send(style))
}
