import { readAddressScript, readStyle } from '@gatehouse/contract/pages/pages'
import type { FastifyInstance } from 'fastify'

import { servePage } from '#http/pages/serve-page.ts'
import { readTextAsset } from '#platform/assets.ts'

/** What the pages load besides themselves. */
export function serveStaticFiles(app: FastifyInstance) {
  const style = readTextAsset('sign-in.css')
  const script = readTextAsset('address-form.js')
  servePage(app, readStyle, (_, reply) => reply.type('text/css; charset=utf-8').send(style))
  servePage(app, readAddressScript, (_, reply) =>
    reply.type('text/javascript; charset=utf-8').send(script),
  )
}
