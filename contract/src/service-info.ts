import { z } from 'zod'

import { adminBodyLimitBytes, type Endpoint } from './endpoint.ts'

const publicRead = {
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

/** Clients ask here whether anybody is at home. */
export const readRoot = {
  ...publicRead,
  id: 'readRoot',
  summary: 'What answers at this address',
  path: '/',
  response: z.object({ name: z.literal('gatehouse'), openapi: z.string() }),
} as const satisfies Endpoint

export const readLiveness = {
  ...publicRead,
  id: 'readLiveness',
  summary: 'Is the process alive',
  path: '/health/live',
  response: Health,
} as const satisfies Endpoint

export const readReadiness = {
  ...publicRead,
  id: 'readReadiness',
  summary: 'Should this process get traffic; 503 when it should not',
  path: '/health/ready',
  response: Health,
  errors: ['dependency_unavailable'],
} as const satisfies Endpoint
