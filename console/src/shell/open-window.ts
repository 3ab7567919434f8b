/** The window of the shell that is open over the page. */
export type OpenWindow = 'search' | 'projects' | 'shortcuts' | null
