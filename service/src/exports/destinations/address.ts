/** An endpoint with the path of its API, unless it has a path already. What is no address is refused when it is called. */
export function addressWith(endpoint: string, path: string): string {
  const url = URL.parse(endpoint)
  if (!url || url.pathname !== '/') return endpoint
  url.pathname = path
  return url.href
}

/** Adds a path to a configured address, which may have a path of its own and end with a slash. */
export function addPath(endpoint: string, path: string): URL {
  const url = new URL(endpoint)
  url.pathname = url.pathname.replace(/\/$/, '') + path
  return url
}
