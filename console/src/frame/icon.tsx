/** A small sign of lines, in the colour of its text; what it means stands beside it. */
export function Icon({ path }: { readonly path: string }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden>
      <path d={path} />
    </svg>
  )
}
