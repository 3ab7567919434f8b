import type { FastifyInstance } from 'fastify'

import { serveCreateExport } from './create-sink.ts'
import { serveListExportDeadLetters, serveRequeueExportDeadLetters } from './dead-letters.ts'
import { serveDeleteExport } from './delete-sink.ts'
import type { SinkDeps } from './deps.ts'
import { serveListExports, serveRetrieveExport } from './read-sinks.ts'
import { serveReplayExport } from './replay-sink.ts'
import { serveTestExport } from './test-sink.ts'
import { serveUpdateExport } from './update-sink.ts'

/** The endpoints of export sinks. */
export function serveExports(app: FastifyInstance, deps: SinkDeps) {
  serveListExports(app, deps)
  serveCreateExport(app, deps)
  serveRetrieveExport(app, deps)
  serveUpdateExport(app, deps)
  serveDeleteExport(app, deps)
  serveTestExport(app, deps)
  serveReplayExport(app, deps)
  serveListExportDeadLetters(app, deps)
  serveRequeueExportDeadLetters(app, deps)
}
