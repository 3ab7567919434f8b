import type * as contract from '../service-info.ts'
import type { receiveStripeEvent } from '../webhook.ts'
import { type ExampleOf, morning } from './example.ts'

const document = { openapi: '3.1.0' } as const

export const serviceInfoExamples = {
  readRoot: {
    answer: { name: 'gatehouse', openapi: '/openapi.json' },
  } satisfies ExampleOf<typeof contract.readRoot>,
  readOpenApi: { answer: document } satisfies ExampleOf<typeof contract.readOpenApi>,
  readWellKnownOpenApi: {
    answer: document,
  } satisfies ExampleOf<typeof contract.readWellKnownOpenApi>,
  readLiveness: { answer: { status: 'ok' } } satisfies ExampleOf<typeof contract.readLiveness>,
  readReadiness: { answer: { status: 'ok' } } satisfies ExampleOf<typeof contract.readReadiness>,
  receiveStripeEvent: {
    body: {
      id: 'evt_1SaMpLe',
      type: 'customer.created',
      created: morning,
      livemode: true,
      data: { object: { id: 'cus_SaMpLe', object: 'customer' } },
    },
    answer: { received: true, outcome: 'ignored' },
  } satisfies ExampleOf<typeof receiveStripeEvent>,
}
