import { z } from 'zod'

import { adminBodyLimitBytes, type Endpoint } from './endpoint.ts'

/** What everybody may read, without a credential. */
export const publicRead = {
  method: 'GET',
  dialect: 'admin',
  credentials: [],
  permission: null,
  bodyLimitBytes: adminBodyLimitBytes,
  successStatus: 200,
  isIdempotent: false,
  errors: [],
} as const

const OpenApiDocument = z.looseObject({ openapi: z.literal('3.1.0') })

const Health = z.object({ status: z.enum(['ok', 'unavailable']) }).meta({ id: 'Health' })

export const readOpenApi = {
  ...publicRead,
  id: 'readOpenApi',
  summary: 'This interface as OpenAPI 3.1',
  path: '/openapi.json',
  response: OpenApiDocument,
} as const satisfies Endpoint

export const readWellKnownOpenApi = {
  ...publicRead,
  id: 'readWellKnownOpenApi',
  summary: 'This interface as OpenAPI 3.1, at its well-known place',
  path: '/.well-known/openapi.json',
  response: OpenApiDocument,
} as const satisfies Endpoint

/** Some clients call the root to check whether the service is reachable. */
export const readRoot = {
  ...publicRead,
  id: 'readRoot',
  summary: 'The name of this service',
  path: '/',
  response: z.object({ name: z.literal('gatehouse'), openapi: z.string() }),
} as const satisfies Endpoint

export const readLiveness = {
  ...publicRead,
  id: 'readLiveness',
  summary: 'Whether the process is alive',
  path: '/health/live',
  response: Health,
} as const satisfies Endpoint

export const readReadiness = {
  ...publicRead,
  id: 'readReadiness',
  summary: 'Whether the process should get traffic; 503 when it should not',
  path: '/health/ready',
  response: Health,
  errors: ['dependency_unavailable'],
} as const satisfies Endpoint
