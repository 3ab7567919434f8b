import type { Reason, Refusal } from './fault.ts'

const hasCode =
  (code: string) =>
  (refusal: Refusal): boolean =>
    refusal.code === code

const says =
  (code: string, words: string) =>
  (refusal: Refusal): boolean =>
    refusal.code === code && refusal.message.includes(words)

const image = (url: string) => ({ type: 'image_url', image_url: { url } })

/** What can refuse a call before anything looks at what it says, by the names of the table. */
export const reasonsBeforeChecks = {
  'URL or headers': {
    fault: { query: `?${'x'.repeat(9000)}` },
    isOf: hasCode('url_too_long'),
  },
  'path or method': { fault: { method: 'PATCH' }, isOf: hasCode('method_not_allowed') },
  overload: {
    fault: { state: 'overloaded' },
    isOf: says('overloaded', 'more calls than it can serve'),
  },
  credential: { fault: { caller: 'revoked' }, isOf: ({ status }) => status === 401 },
  'suspended organization': {
    isIn: ({ isSuspended }) => isSuspended,
    isOf: hasCode('organization_suspended'),
  },
  'permission, where the call names a project': {
    fault: {
      caller: 'without permission',
      headers: { 'x-policy-project': 'proj_of_nobody' },
    },
    isOf: says('permission_denied', 'lacks the permission'),
  },
  'named project': {
    fault: { headers: { 'x-policy-project': 'proj_of_nobody' } },
    isOf: hasCode('project_not_found'),
  },
  'overload by the organization': {
    fault: { state: 'organization overloaded' },
    isOf: says('overloaded', 'more calls than it can serve'),
  },
  'full audit log': {
    fault: { state: 'audit log full' },
    isOf: says('dependency_unavailable', 'audit log'),
  },
  'unknown policies': {
    fault: { state: 'policies unknown' },
    isOf: says('policy_evaluation_unavailable', 'cannot be loaded'),
  },
  'bodies at once': {
    fault: { state: 'too many bodies' },
    isOf: says('rate_limit_exceeded', 'concurrent requests on organization'),
  },
  'size of the body': {
    fault: { headers: { 'content-length': '99999999' } },
    isOf: hasCode('request_too_large'),
  },
  'memory for bodies': {
    fault: { state: 'no memory for bodies' },
    isOf: says('overloaded', 'large requests'),
  },
  'content type': {
    fault: { headers: { 'content-type': 'text/plain' } },
    isOf: hasCode('invalid_content_type'),
  },
  'no turn in time': {
    fault: { state: 'no turn' },
    isOf: says('overloaded', 'more calls than it can serve'),
  },
  'rate limit': {
    fault: { caller: 'over its limits' },
    isOf: says('rate_limit_exceeded', 'requests per day on project'),
  },
  quota: {
    fault: { caller: 'over its quota' },
    isOf: says('rate_limit_exceeded', 'quota of the user'),
  },
  budget: { fault: { caller: 'over its budget' }, isOf: hasCode('budget_exceeded') },
  'size beyond the limits': {
    fault: { caller: 'with tiny limits' },
    isOf: says('invalid_request', 'your limits allow at once'),
  },
  permission: {
    fault: { caller: 'without permission' },
    isOf: says('permission_denied', 'lacks the permission'),
  },
  'project key': {
    fault: { caller: 'a token of no project' },
    isOf: says('permission_denied', 'only with project keys'),
  },
  'policy headers': {
    fault: { headers: { 'x-policy-target': '' } },
    isOf: says('invalid_request', 'X-Policy-Target'),
  },
  JSON: { fault: { trailing: '}' }, isOf: hasCode('invalid_json') },
  'form of the body': {
    fault: { members: { temperature: 'hot' } },
    isOf: says('invalid_request', 'temperature must be'),
  },
  model: { fault: { members: { model: 'none' } }, isOf: hasCode('model_not_found') },
  'capability of the model': {
    fault: {
      members: {
        response_format: { type: 'json_schema', json_schema: { name: 'any', schema: {} } },
      },
    },
    isOf: says('invalid_request', 'cannot follow a JSON schema'),
  },
  image: { fault: { part: image('data:image/png;base64,AAAA') }, isOf: hasCode('invalid_image') },
  feature: {
    fault: { members: { web_search_options: {} } },
    isOf: says('unsupported_parameter', 'web_search'),
  },
} as const satisfies Readonly<Record<string, Reason>>
