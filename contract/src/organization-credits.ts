import { readCredits } from './credits.ts'
import { adminEndpoint } from './endpoint.ts'

export const readOrganizationCredits = adminEndpoint({
  id: 'readOrganizationCredits',
  summary: 'Read the balance with an administrator key; the answer is at most 5 seconds old',
  method: 'GET',
  path: '/v1/organization/credits',
  permission: 'credits.read',
  response: readCredits.response,
  isConditional: true,
  errors: ['credit_balance_unavailable'],
})
