import { describeLimits, type Limited } from './limit-words.ts'

/** The own limits, the budget and the models of a project or key, in its row. */
export function LimitTags({ of, none }: { of: Limited; none: string }) {
  const words = describeLimits(of)
  if (words.length === 0) return <span className="muted">{none}</span>
  return (
    <span className="tags">
      {words.map((each) => (
        <span className="tag" key={each}>
          {each}
        </span>
      ))}
    </span>
  )
}
