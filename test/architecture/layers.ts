/** The plan of the house: what stands on what. Every part has its floor and imports go down only, so no circle can be closed. */

/** From the ground up. Sources share a floor, and none of them imports another. */
const FLOORS = [
  'core',
  'outgoing',
  'store',
  'api',
  'work',
  'history',
  'letters',
  'queues',
  'redrive',
  'client',
  'terminal',
  'demo/story',
  'sources/source-*.ts',
  'sources/*/',
  'sources/index.ts',
  'sources/*.ts',
  'migrations.ts',
  'verify',
  'office.ts',
  'config',
  'observe',
  'http',
  'demo',
  'cli',
  'index.ts',
]

/** The shapes of a module's API: whoever calls it takes its types from there, so it draws in nothing of the server's. */
export const isShapes = (path: string): boolean => /(?:^|\/)shapes\.ts$/.test(path)

/** What does not stand on everything below it: folders that it may import, or single files of them. */
const NARROW: Readonly<Record<string, readonly string[]>> = {
  store: ['core'],
  // Of the store it knows only how that says that it cannot be reached.
  api: ['core', 'store/database.ts'],
  client: ['core'],
  terminal: ['core', 'client'],
}

/** The folder, or the file at the root, that a file belongs to. Each source is one; so is what a source is, so are the lists, and so is what parts of the demo stand on. */
export function partOf(path: string): string {
  const [first = '', second = ''] = path.split('/')
  if (first === 'demo' && second === 'story') return 'demo/story'
  if (first !== 'sources') return first
  if (!second.endsWith('.ts')) return `sources/${second}`
  return second.startsWith('source-') ? 'sources/source-*.ts' : 'sources/*.ts'
}

const floorOf = (part: string): number => FLOORS.indexOf(/^sources\/[\w-]+$/.test(part) ? 'sources/*/' : part)

/** Whether the plan knows where a file belongs. */
export const isPlanned = (path: string): boolean => floorOf(partOf(path)) >= 0

/** Whether the plan lets a file import another. */
export function isAllowed(from: string, to: string): boolean {
  const [part, other] = [partOf(from), partOf(to)]
  const isBelow = isPlanned(to) && floorOf(other) < floorOf(part)
  if (isShapes(from)) return other === 'core' || (isShapes(to) && (part === other || isBelow))
  if (part === other) return true
  if (part === 'client' && isShapes(to)) return true
  const narrow = NARROW[part]
  if (narrow !== undefined) return narrow.includes(other) || narrow.includes(to)
  return isBelow
}
