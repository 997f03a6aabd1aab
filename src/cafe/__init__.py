"""CAFe: how long to wait, and for how many clients."""
