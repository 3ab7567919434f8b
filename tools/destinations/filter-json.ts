/** Keeps what Elasticsearch's `filter_path` asks for: paths with commas between them, `*` for any one member. */
export function filterJson(value: unknown, paths: string): unknown {
  return (
    keep(
      value,
      paths.split(',').map((path) => path.split('.')),
    ) ?? {}
  )
}

function keep(value: unknown, paths: readonly (readonly string[])[]): unknown {
  if (paths.some((path) => path.length === 0)) return value
  if (Array.isArray(value)) {
    const kept = value.map((item) => keep(item, paths)).filter((item) => item !== undefined)
    return kept.length > 0 ? kept : undefined
  }
  if (value === null || typeof value !== 'object') return undefined
  const members = Object.entries(value).flatMap(([name, member]) => {
    const rest = paths.filter(([first]) => first === name || first === '*')
    const kept =
      rest.length > 0
        ? keep(
            member,
            rest.map((path) => path.slice(1)),
          )
        : undefined
    return kept === undefined ? [] : [[name, kept] as const]
  })
  return members.length > 0 ? Object.fromEntries(members) : undefined
}
