import { updateProject } from '@gatehouse/contract/project'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { everyWay, nameOf, openEveryWay } from './enforcement/testing/every-way.ts'

const ways = everyWay.filter(
  ({ caller, model, shape }) =>
    caller !== 'anonymous' && model === 'chat-scripted' && shape === 'plain',
)

test('the event of a call has the labels of its project, as they were then', async () => {
  const { api, send } = await openEveryWay()
  const params = { project_id: api.organization.projectId }
  const eventOf = async (call: (typeof ways)[number], members = {}) => {
    const id = String((await send(call, { members })).headers['x-request-id'])
    const find = async () => {
      const { rows } = await sql<{ header: object; payload: object }>`
        select header, convert_from(payload, 'utf8')::jsonb as payload from event
        where header->>'request_id' = ${id}`.execute(api.db)
      return rows[0]
    }
    await waitUntil(async () => (await find()) !== undefined)
    return find()
  }
  for (const call of ways) {
    const labels = { team: nameOf(call).replaceAll(' ', '-'), cost_center: '4711' }
    await api.send(updateProject, { params, body: { labels } })
    await waitUntil(async () => JSON.stringify(await eventOf(call)).includes(labels.team))
    const served = await eventOf(call)
    expect(served, nameOf(call)).toMatchObject({ payload: { project_labels: labels } })
    // Headers are hashed into the log and can never be erased.
    expect(JSON.stringify(served?.header)).not.toContain('4711')
    const refused = await eventOf(call, { model: 'none' })
    expect(refused, nameOf(call)).toMatchObject({ payload: { project_labels: labels } })
    await api.send(updateProject, { params, body: { labels: {} } })
    await waitUntil(async () => !JSON.stringify(await eventOf(call)).includes('project_labels'))
  }
})
