import { openConsole, showConsole } from '@gatehouse/contract/pages/pages'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import { sendOn, servePage } from '#http/pages/serve-page.ts'
import { ApiError } from '#platform/api-error.ts'
import { consoleFolder } from '#platform/assets.ts'

import { chooseCoding } from './choose-coding.ts'
import { type ConsoleFile, loadConsoleFiles } from './console-files.ts'

const indexPath = 'index.html'
/** Files below it are named after their content, so they never change. */
const immutableFolder = 'assets/'
const yearSeconds = 31_536_000

/**
 * Everything is from here and nothing is inline; a text cannot become markup, because the only ways to make markup of a text are
 * refused (trusted types).
 */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"

/** Serves the built console from `folder`. Without one, or where the operator wants none, its paths are 404. */
export function serveConsole(app: FastifyInstance, isOn: boolean, folder = consoleFolder) {
  const files = isOn && folder ? loadConsoleFiles(folder) : null
  servePage(app, openConsole, (_, reply) => {
    requireFiles(files)
    return sendOn(reply, '/console/')
  })
  servePage(app, showConsole, async (request, reply) => {
    const { '*': path } = request.params as { '*': string }
    return sendFile(request, reply, path, requireFiles(files))
  })
}

type Files = ReadonlyMap<string, ConsoleFile>

function requireFiles(files: Files | null): Files {
  if (files) return files
  throw new ApiError(
    'route_not_found',
    'There is no console here: the operator has not set PUBLIC_URL, or has switched it off with CONSOLE=false.',
  )
}

/** A path that names no file is a page of the console, which its index shows. */
async function sendFile(request: FastifyRequest, reply: FastifyReply, path: string, files: Files) {
  const isAsset = path.startsWith(immutableFolder)
  const file = files.get(path) ?? (isAsset ? undefined : files.get(indexPath))
  // A page of another release asks for its files. With the index as the answer, the browser would run HTML as a script.
  if (!file) throw new ApiError('route_not_found', 'The console has no such file; load it again.')
  const coding = chooseCoding(request.headers['accept-encoding'], file.codings)
  const bytes = await file.read(coding)
  void reply.type(file.type).header('vary', 'accept-encoding')
  if (coding !== null) void reply.header('content-encoding', coding)
  if (isAsset) void reply.header('cache-control', `public, max-age=${yearSeconds}, immutable`)
  return reply.header('content-security-policy', policy).send(bytes)
}
