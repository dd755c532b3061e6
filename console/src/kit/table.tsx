/**
 * Tables: columns are declared once per screen, rows come page by page. One row is the current one (`j`/`k` move it, it is focused),
 * some may be selected. The table knows nothing about what rows mean. Where there is no room for columns, rows have two lines.
 */
import './table.css'
import { Checkbox, Table as Plain } from '@mantine/core'
import { type ColumnDef, type RowData, tableFeatures, useTable } from '@tanstack/react-table'
import { type ReactNode, useEffect, useMemo, useRef } from 'react'
import type { Cursor } from './use-cursor.ts'

const features = tableFeatures({})

/** A column of a table of `Row`s. */
export interface Column<Row> {
  readonly id: string
  readonly title: string
  readonly numeric?: boolean
  /** CSS width, such as `8rem`; left out, it takes what is left. */
  readonly width?: string
  /** Cut with an ellipsis instead of broken into lines. */
  readonly oneLine?: boolean
  /** In a row of two lines: its title (left out: the first column), a line of its own, the act at the end, or not shown. Others are facts. */
  readonly narrow?: 'title' | 'text' | 'act' | 'hidden'
  cell(row: Row): ReactNode
}

export interface TableProps<Row> {
  /** For screen readers. */
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  keyOf(row: Row): string
  /** The row on which keys act. */
  readonly current?: Pick<Cursor, 'index' | 'setIndex' | 'moved'>
  /** Which rows are selected, by key; left out, rows cannot be selected. */
  readonly selection?: {
    readonly keys: ReadonlySet<string>
    toggle(key: string, range: boolean): void
    setAll(selected: boolean): void
  }
  /** Adds up under the rows. */
  readonly foot?: ReactNode
}

/** A table that fits its columns into the width there is. */
export function Table<Row extends RowData>({
  label,
  columns,
  rows,
  keyOf,
  current,
  selection,
  foot,
}: TableProps<Row>) {
  const names = columns.map(({ id }) => id).join(' ')
  const defs = useMemo(() => names.split(' ').map((id): ColumnDef<typeof features, Row> => ({ id })), [names])
  const table = useTable({ features, columns: defs, data: rows as Row[], getRowId: keyOf })
  const body = useRef<HTMLTableSectionElement>(null)
  const index = current?.index ?? -1
  const moved = current?.moved ?? 0
  const seen = useRef(moved)
  useEffect(() => {
    // Only keys take the focus here: a list that is read anew while somebody types elsewhere must not.
    if (seen.current === moved) return
    seen.current = moved
    const row = body.current?.rows[index]
    row?.focus({ preventScroll: true })
    row?.scrollIntoView({ block: 'nearest' })
  }, [index, moved])

  const hasTitle = columns.some(({ narrow }) => narrow === 'title')
  const isAll = rows.length > 0 && rows.every((row) => selection?.keys.has(keyOf(row)))
  return (
    <div className="table-frame">
      <Plain
        aria-label={label}
        highlightOnHover
        highlightOnHoverColor="var(--hover)"
        stickyHeader
        verticalSpacing={6}
        className="table"
        role="table"
      >
        <Plain.Thead role="rowgroup">
          {table.getHeaderGroups().map((group) => (
            <Plain.Tr key={group.id} role="row">
              {selection !== undefined && (
                <Plain.Th w="2.5rem" role="columnheader">
                  <Checkbox
                    size="xs"
                    aria-label="Select all rows of this page"
                    checked={isAll}
                    indeterminate={!isAll && selection.keys.size > 0}
                    onChange={(event) => selection.setAll(event.currentTarget.checked)}
                  />
                </Plain.Th>
              )}
              {group.headers.map((header, place) => {
                const column = columns[place]
                return (
                  <Plain.Th
                    key={header.id}
                    w={column?.width}
                    ta={column?.numeric ? 'right' : 'left'}
                    scope="col"
                    role="columnheader"
                  >
                    {column?.title}
                  </Plain.Th>
                )
              })}
            </Plain.Tr>
          ))}
        </Plain.Thead>
        <Plain.Tbody ref={body} role="rowgroup">
          {table.getRowModel().rows.map((row, place) => {
            const isSelected = selection?.keys.has(row.id) === true
            return (
              <Plain.Tr
                key={row.id}
                role="row"
                data-selectable={selection !== undefined || undefined}
                tabIndex={current === undefined ? undefined : place === Math.max(index, 0) ? 0 : -1}
                aria-selected={selection === undefined ? undefined : isSelected}
                data-current={place === index || undefined}
                data-selected={isSelected || undefined}
                onFocus={(event) => {
                  if (event.target === event.currentTarget) current?.setIndex(place)
                }}
              >
                {selection !== undefined && (
                  <Plain.Td role="cell" data-narrow="select">
                    <Checkbox
                      size="xs"
                      aria-label={`Select row ${place + 1}`}
                      checked={isSelected}
                      onChange={(event) =>
                        selection.toggle(row.id, (event.nativeEvent as MouseEvent).shiftKey === true)
                      }
                    />
                  </Plain.Td>
                )}
                {row.getAllCells().map((cell, at) => (
                  <Plain.Td
                    key={cell.id}
                    ta={columns[at]?.numeric ? 'right' : 'left'}
                    className={columns[at]?.oneLine ? 'one-line' : undefined}
                    role="cell"
                    data-narrow={columns[at]?.narrow ?? (at === 0 && !hasTitle ? 'title' : undefined)}
                  >
                    {/* Called and not rendered as a component: a new function with every render would be a new
                        component, its elements would be replaced, and a click that began on one would be lost. */}
                    {columns[at]?.cell(row.original)}
                    {columns[at]?.numeric === true && (
                      <span className="cell-label" aria-hidden>
                        {` ${columns[at].title.toLowerCase()}`}
                      </span>
                    )}
                  </Plain.Td>
                ))}
              </Plain.Tr>
            )
          })}
        </Plain.Tbody>
        {foot !== undefined && <Plain.Tfoot role="rowgroup">{foot}</Plain.Tfoot>}
      </Plain>
    </div>
  )
}
