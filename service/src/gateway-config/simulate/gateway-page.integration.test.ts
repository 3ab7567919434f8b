import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { createTestApi } from '#testing/test-api.ts'

// The examples of docs/gateway.md, in their order, as a reader would try them.

const page = readFileSync(new URL('../../../../docs/gateway.md', import.meta.url), 'utf8')

/** The commands of the page, each with the answer that is shown behind it. */
const examples = [...page.matchAll(/```sh\n(.*?)```(?:\n\n```json\n(.*?)```)?/gs)].flatMap(
  ([, commands = '', answer]) =>
    commands
      .split(/^(?=curl )/m)
      .filter((command) => command.startsWith('curl '))
      .map((command) => ({
        url: /"((?:\$URL|https:)\/[^"]+)"/.exec(command)?.[1] ?? '',
        method: /-X (\w+)/.exec(command)?.[1] ?? (command.includes('--json') ? 'POST' : 'GET'),
        ifMatch: /If-Match: ([^']+)'/.exec(command)?.[1],
        body: /--json '(.*?)'/s.exec(command)?.[1],
        answer: answer === undefined ? undefined : (JSON.parse(answer) as unknown),
      })),
)

test('the examples of the page are answered as it shows', async () => {
  const { app, organization } = await createTestApi()
  let historyId = ''
  for (const { url, method, ifMatch, body, answer } of examples) {
    const response = await app.inject({
      method: method as 'GET' | 'POST' | 'PATCH',
      url: url
        .replace('$URL', '/api/policy-gateway')
        .replace('https://gatehouse.example.com', '')
        .replace('$ID', historyId)
        .replace('$PROJECT', organization.projectId),
      headers: {
        authorization: `Bearer ${organization.adminKey}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(ifMatch !== undefined && { 'if-match': ifMatch }),
      },
      ...(body !== undefined && { payload: body }),
    })
    expect([url, response.statusCode, response.body]).toEqual([url, 200, response.body])
    if (answer !== undefined) expect(response.json()).toEqual(answer)
    if (url.endsWith('/history'))
      historyId = response.json<{ data: { id: string }[] }>().data[0]!.id
  }
  expect(examples.map(({ url, method }) => `${method} ${url}`)).toEqual([
    'GET $URL/config',
    'POST $URL/config',
    'POST $URL/simulate',
    'POST $URL/simulate',
    'POST $URL/simulate',
    'POST $URL/config',
    'GET $URL/rollout',
    'POST $URL/config',
    'PATCH https://gatehouse.example.com/v1/organization/projects/$PROJECT',
    'GET $URL/quotas?scope=user',
    'GET $URL/history',
    'POST $URL/history/$ID/restore',
  ])
})
