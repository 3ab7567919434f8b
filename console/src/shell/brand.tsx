export function Brand() {
  return (
    <div className="brand">
      <svg viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth="2" aria-hidden="true">
        <path d="M3 21V9l9-6 9 6v12M8 21v-7a4 4 0 0 1 8 0v7M3 21h18" />
      </svg>
      <span>Gatehouse</span>
    </div>
  )
}
