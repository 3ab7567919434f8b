import { queryDatabase } from '@gatehouse/tools/throwaway-postgres'

const chunk = 10_000

/** What the log has numbered for an organization: what its sinks have to get. */
export async function countNumbered(url: string, organizationId: string): Promise<number> {
  const [row] = await queryDatabase(
    url,
    `select org_seq::text as numbered from audit_head where organization_id = '${organizationId}'`,
  )
  return Number(row?.['numbered'] ?? 0)
}

/**
 * Writes the last call of an organization this many times more, as events that the worker has to number. `from` makes their ids
 * differ from those of an earlier call of this function.
 */
export async function repeatLastCall(
  url: string,
  organizationId: string,
  { from, times }: { from: number; times: number },
) {
  for (let done = 0; done < times; done += chunk) {
    const [first, last] = [from + done + 1, from + Math.min(done + chunk, times)]
    await queryDatabase(
      url,
      `insert into event (day, id, shard, organization_id, kind, at, header, payload, salt, payload_hash)
       select day, (substr(id::text, 1, 24) || lpad(to_hex(number), 12, '0'))::uuid, shard, organization_id, kind, at,
         header, payload, salt, payload_hash
       from (select * from event where organization_id = '${organizationId}' and header->>'phase' = 'call'
         order by seq limit 1) as call, generate_series(${first}, ${last}) as number`,
    )
  }
}
