/** Lets the browser save a text as a file. */

/** The address of the file is given up later: some browsers begin to read it only after the click. */
const GIVE_UP_MS = 10_000

export function saveFile(name: string, type: string, text: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), GIVE_UP_MS)
}
